# Stands for the broker module that a program in Go replaces. LIVE_PROGRAM and LIVE_ARGS are of ./run.
import os


def mod_main(h, *args):
    name = os.path.splitext(os.path.basename(__file__))[0]
    os.execv(os.environ["LIVE_PROGRAM"], [name, "-flux", *os.environ["LIVE_ARGS_" + name.replace("-", "_")].split(), *args])
