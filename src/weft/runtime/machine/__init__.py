"""What the machine of `weft.kernels.machine` is given: values of events, and conditions as code."""
