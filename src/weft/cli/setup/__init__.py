"""Commands around an installation: a first project, what is installed, kernels compiled ahead."""
