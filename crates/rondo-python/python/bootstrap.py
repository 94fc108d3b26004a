import sys
sys.version_info >= (3, 9) or sys.exit("Python 3.9 or later is needed, and this is " + sys.version)
here = sys.path.pop(0) if sys.path[:1] == [""] else None
sent = open(0, "rb", closefd=False)
code = compile(sent.read(int(sent.readline())), "<rondo>", "exec")
exec(code, {"__name__": "__rondo__", "__builtins__": dict(vars(__import__("builtins"))), "WORKING_DIRECTORY": here})
