# The loop: one request, one reply.

# These may run the user's code.
RUNNING = {
    "get_type": get_type,
    "get_repr": get_repr,
    "get_dir": get_dir,
    "get_doc": get_doc,
    "inspect": inspect_value,
    "eval_expr": eval_expr,
    "run_cell": run_cell,
}
# These run none, nor do their failures.
LOOKING = {
    "list_globals": stored_globals,
    "get_last_exception": get_last_exception,
    "stored_type": lambda path: stored_type(follow(path)),
    "stored_repr": lambda path: stored_repr(follow(path)),
    "stored_dir": lambda path: stored_members(follow(path)),
    "stored_doc": lambda path: stored_doc(follow(path)),
    "stored_inspect": lambda path: stored_everything(follow(path)),
    "is_complete": is_complete,
    "complete": complete,
}


def respond(request):
    """Returns the reply to a request, whatever the user's code does."""
    is_look = request["op"] in LOOKING
    work = (LOOKING if is_look else RUNNING)[request["op"]]
    value, error = attempt(lambda: work(**request["args"]))
    if error is None:
        return {"ok": True, "result": value}
    told = describe_failed_look(error) if is_look else describe_exception(error)
    return {
        "ok": False,
        "code": "python_exception",
        "message": headline(told),
        "details": told,
        "interrupted": isinstance(error, KeyboardInterrupt),
    }


def go_to(directory):
    """Goes to another directory before a request. Returns why that is not possible, if it is not."""
    try:
        change_directory(bytes(directory))
        STDLIB_PATH[:] = own_paths(current_directory())
    except OSError as error:
        return {"ok": False, "directory_error": error.errno}


BROKEN = {"ok": False, "code": "internal", "message": "the helper failed", "details": {}}


def on_interrupt(number, frame):
    if State.armed:
        # What is written in C may ask for signals with an exception at hand, as `input` does; an
        # exception that is raised here would be a `SystemError` then.
        raise_interrupt(number, frame)


raise_interrupt = _signal.default_int_handler


def opened(descriptor):
    return open(
        descriptor, "w", buffering=1, encoding="utf-8", errors="backslashreplace", newline="\n",
        closefd=False,
    )


def opened_input():
    return open(0, encoding="utf-8", closefd=False)


class Streams:
    """The standard streams, which the user's code may close, and then are opened again."""

    def __init__(self):
        self.kept = {0: own_descriptor(0), 1: own_descriptor(1), 2: own_descriptor(2)}
        self.names = {1: "stdout", 2: "stderr"}
        for descriptor, name in self.names.items():
            stream = opened(descriptor)
            setattr(sys, name, stream)
            setattr(sys, "__%s__" % name, stream)

        self.input = sys.stdin

    def unlend(self):
        """Has the streams be empty input and pipes; what was typed and not read is no one else's."""
        for descriptor, kept in self.kept.items():
            duplicate_onto(kept, descriptor)
        if sys.stdin is self.input:
            self.input = sys.stdin = sys.__stdin__ = opened_input()

    def mend(self):
        # `exit()` closes it.
        if getattr(sys.stdin, "closed", False) is True:
            self.input = sys.stdin = opened_input()
        for descriptor, name in self.names.items():
            try:
                os.fstat(descriptor)
            except OSError:
                os.dup2(self.kept[descriptor], descriptor)
            if getattr(getattr(sys, name, None), "closed", False) is True:
                setattr(sys, name, opened(descriptor))

    def flush(self):
        for name in self.names.values():
            stream = getattr(sys, name, None)
            if stream is not None:
                stream.flush()


def wear_leash(channel):
    """Takes a pipe's end whose other one only Rondo has: when that closes, however Rondo ended, the
    kernel kills our process group. Where the kernel cannot, we end when we are next idle.

    Returns the terminal, where one came along."""
    import _socket

    socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, channel.descriptor)
    _, told, _, _ = socket.recvmsg(1, _socket.CMSG_LEN(8))
    socket.detach()
    sent = told[0][2]
    low, *terminal = [int.from_bytes(sent[at : at + 4], sys.byteorder) for at in range(0, len(sent), 4)]
    leash = own_descriptor(low)
    os.close(low)
    if hasattr(fcntl, "F_SETSIG"):
        fcntl.fcntl(leash, fcntl.F_SETOWN, -os.getpgrp())
        fcntl.fcntl(leash, fcntl.F_SETSIG, int(_signal.SIGKILL))
        fcntl.fcntl(leash, fcntl.F_SETFL, os.O_NONBLOCK | os.O_ASYNC)
    return Terminal(terminal[0]) if terminal else None


def take_channel():
    """Moves the channel off standard input, which is empty from now on."""
    channel = Channel(own_descriptor(0))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, 0)
    os.close(nothing)
    sys.stdin = sys.__stdin__ = opened_input()
    return channel


def restore_surroundings():
    """Gives the user's code what the start left out."""
    sys.path[:] = USERS_PATHS + FULL_PATH
    if WORKING_DIRECTORY == "":
        sys.path.insert(0, WORKING_DIRECTORY)
    if ADDS_USER_SITE and "site" in sys.modules:
        folder = sys.modules["site"].getusersitepackages()
        if os.path.isdir(folder):
            sys.path.append(folder)
    for name in REMOVED:
        os.environ.pop(name, None)
    os.environ.update(RESTORED)


def serve():
    if os.getsid(0) != os.getpid():
        os.setsid()
    channel = take_channel()
    streams = Streams()
    channel.send({"version": "%d.%d.%d" % sys.version_info[:3], "executable": sys.executable or ""})
    terminal = wear_leash(channel)

    def in_child():
        State.forked = True
        close_descriptor(channel.descriptor)

    os.register_at_fork(after_in_child=in_child)
    sys.modules["__main__"] = MAIN
    sys.argv = [""]
    restore_surroundings()
    set_signal, interrupt, leave = _signal.signal, int(_signal.SIGINT), os._exit
    while True:
        request = channel.receive()
        if request is None:
            leave(0)
        # The user's code may have set its own; deadlines hold by this one.
        set_signal(interrupt, on_interrupt)
        reply = BROKEN
        try:
            # The streams may be objects of the user's.
            runs = request["op"] in RUNNING
            runs and attempt(streams.mend)
            if terminal is not None and "mark" in request:
                terminal.lend()
            reply = "directory" in request and go_to(request["directory"]) or respond(request)
            runs and attempt(streams.flush)
        except BaseException:
            State.armed = False
        if State.forked:
            # A child that the user's code forked has come to the end of that code.
            leave(0)
        if terminal is not None and terminal.is_lent:
            try:
                terminal.take_back(streams, request["mark"])
            except BaseException:
                State.armed = False
        reply["id"] = request["id"]
        channel.send(reply)


serve()
