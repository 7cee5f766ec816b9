"""What runs on the rented instance: it records a run and stores its evidence before the instance goes."""

__version__ = "0.1.0"
PRODUCER = f"lastwords {__version__}"
