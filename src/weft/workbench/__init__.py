"""The workbench: a project folder in a browser. `service.py` does all there is to do, without a browser."""
