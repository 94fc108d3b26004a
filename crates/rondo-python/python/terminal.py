# The terminal of a person's cells, which stands in for the standard streams while one runs.

duplicate_onto = os.dup2


class Terminal:
    def __init__(self, descriptor):
        import termios

        # `/dev/tty` is this one then, and its Ctrl-C interrupts us and what we start.
        fcntl.ioctl(descriptor, termios.TIOCSCTTY, 0)
        self.descriptor = own_descriptor(descriptor)
        close_descriptor(descriptor)
        self.is_lent = False

    def lend(self):
        for standard in (0, 1, 2):
            duplicate_onto(self.descriptor, standard)
        self.is_lent = True
        # Where it is there, `input` has its keys and its history, as at the prompt of `python3`.
        _, missing = attempt(stdlib, "readline")
        resized = int(_signal.SIGWINCH)
        if missing is not None and _signal.getsignal(resized) == _signal.SIG_DFL:
            # A signal that nobody handles wakes no read; readline handles this one by itself.
            _signal.signal(resized, lambda number, frame: None)

    def take_back(self, streams, mark):
        """Writes `mark` behind all that was written, and has the streams be what they are otherwise."""
        left = memoryview(mark.encode())
        while left:
            left = left[write_descriptor(self.descriptor, left) :]
        streams.unlend()
        self.is_lent = False


def has_left(error):
    """Says whether a cell itself called `exit()` or `sys.exit()`, and not a function that it uses."""
    if not isinstance(error, SystemExit):
        return False
    frames = [it.tb_frame.f_code for it in traces(error.__traceback__)]
    frames = [it for it in frames if it.co_filename != HELPER_FILE]
    # `exit` and `quit` are objects of `site`, whose call is a frame.
    if frames and "_sitebuiltins" in frames[-1].co_filename:
        frames.pop()
    return len(frames) == 1 and frames[0].co_name == "<module>"


def traces(trace):
    while trace is not None:
        yield trace
        trace = trace.tb_next


def say_code(error):
    """Prints what `exit` was given, as an interpreter does that ends by it; a number is told by others."""
    if error.code is not None and not isinstance(error.code, int):
        sys.stderr.write(exact(str(error.code)) + "\n")
