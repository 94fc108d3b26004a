//! Looks that need no approval, at objects whose code must not run.

use crate::fixture::{repr, run, session};
use crate::tools::looked;
use rondo_core::ports::Tool;
use rondo_python::{Capability, ReadOnlyNames, Session};
use rondo_types::{ToolErrorCode, ToolOutcome};
use serde_json::{Value, json};
use std::sync::Arc;

/// Everything that a class can be asked for notes that it was.
const TRAPS: &str = r#"
import builtins, sys, types, traceback, inspect, linecache, warnings, codeop
ran = []
def note(name):
    def trap(*args, **named):
        ran.append(name)
        raise RuntimeError(name)
    return trap

SPECIAL = ("repr str bytes format len iter next getitem setitem contains getattr getattribute call bool "
    "eq ne lt le gt ge hash index int float add radd mul dir reversed missing enter length_hint "
    "instancecheck subclasscheck fspath get set delete reduce_ex sizeof").split()
def traps(*left_out):
    return {"__%s__" % it: note(it) for it in SPECIAL if it not in left_out}

class Meta(type):
    locals().update(traps("get", "set", "delete", "call", "setitem"))
    __doc__ = property(note("meta doc"))
    __module__ = property(note("meta module"))
    __name__ = property(note("meta name"))
    __mro__ = property(note("meta mro"))
    __dict__ = property(note("meta dict"))

class Descriptor:
    __get__ = note("descriptor get")
class Data:
    __get__ = note("data get")
    __set__ = note("data set")

class Trap(metaclass=Meta):
    locals().update(traps("get", "set", "delete"))
    __class__ = property(note("class"))
    __dict__ = property(note("dict"))
    __doc__ = property(note("doc"))
    __signature__ = property(note("signature"))
    __wrapped__ = property(note("wrapped"))
    __text_signature__ = property(note("text signature"))
    __annotations__ = property(note("annotations"))
    made = property(note("property"))
    found = Descriptor()
    kept = Data()

class Open(metaclass=Meta):
    "Keeps what it is given."
    locals().update(traps("get", "set", "delete"))
    __class__ = property(note("class"))
    made = property(note("property"))
    def method(self, a, b=5, *rest, c, d=6, **named): pass

class Slots:
    __slots__ = ("a", "b")
    __repr__ = note("slots repr")

class Key(str):
    locals().update(traps("hash"))
    __hash__ = str.__hash__
class Twin:
    def __init__(self, of): self.of = of
    def __hash__(self): return hash(self.of)
    def __eq__(self, other): return False

def of(base):
    return type("My" + base.__name__, (base,), traps("hash", "eq", "get", "set", "delete"))

class Module(types.ModuleType):
    locals().update(traps("get", "set", "delete"))

trap = object.__new__(Trap)
shown = object.__new__(Open)
object.__setattr__(shown, "x", 3)
object.__setattr__(shown, "inner", trap)
slots = Slots()
slots.a = [trap]
module = Module("odd")
types.ModuleType.__dict__["__dict__"].__get__(module)["x"] = 7
late = types.ModuleType("late")
late.__getattr__ = note("module getattr")
nested = {"a": [trap, shown], 5: (trap,), "t": {1, 2}}
mine = {base.__name__: of(base)() for base in (list, tuple, dict, set, frozenset, str, bytes, int, float)}
class Failure(Exception):
    locals().update(traps("get", "set", "delete"))
error = Failure.__new__(Failure, trap, 5)
def function(a, b=trap, *, c=trap): "Does."
function.__wrapped__ = trap
function.__signature__ = trap
twins = {Twin("x"): 1, "y": 2}
namespace = globals()
namespace[Twin("twice")] = 1
namespace["twice"] = 8
class Odd(metaclass=Meta): pass
Odd_with_twins = type("Odd", (), {Twin("x"): 1, Twin("__dict__"): 1, Twin("__doc__"): 1, "x": 9})
with_twins = Odd_with_twins()
class Enough:
    @classmethod
    def make(cls): pass
    @staticmethod
    def help(): pass
class Stream:
    def __getattr__(self, name):
        ran.append("stream " + name)
        raise AttributeError(name)
    def write(self, text): ran.append("write")
    def flush(self): ran.append("flush")
_kept = sys.stdout, sys.stderr
"#;

/// Functions of modules that looks must not use.
const REPLACED: &str = r#"
for _module, _names in {
    traceback: ["format_exception", "print_exception", "TracebackException"],
    inspect: ["getdoc", "signature", "getsource", "cleandoc"],
    linecache: ["getlines", "checkcache", "updatecache", "lazycache"],
    warnings: ["showwarning", "warn", "warn_explicit", "_showwarnmsg"],
}.items():
    for _name in _names:
        setattr(_module, _name, note(_module.__name__ + "." + _name))
warnings.simplefilter("always")
Twin.__eq__ = note("equals")
del ran[:]
sys.stdout = sys.stderr = Stream()
"#;

const LOOKS: [&str; 5] = ["get_type", "get_repr", "get_dir", "get_doc", "inspect"];

/// Paths to look at.
const PATHS: &str = "trap trap.made trap.found trap.kept trap.missing trap.__class__ trap.__dict__ \
    trap.__doc__ trap[0] trap[1:2] Trap Trap.made Trap.found Trap.__mro__ Trap.__name__ \
    Trap.__doc__ Trap.__module__ shown shown.x shown.inner shown.inner.made shown.method \
    Open Open.method Meta slots slots.a slots.b slots.a[0] module module.x module.missing \
    late late.missing nested nested['a'][0] nested[5] nested[True] mine mine['list'] \
    mine['list'][0] mine['dict']['x'] mine['str'][0] mine['int'].real error error.args \
    error.__traceback__ function function.__wrapped__ function.__code__ twins twins['x'] \
    twins['y'] twice missing Odd Odd_with_twins with_twins with_twins.x with_twins.y \
    Enough.make Enough.help ran note '\u{e4}' 1 sys sys.modules sys.stdout builtins \
    namespace Key traps len list.append";

struct World {
    session: Arc<Session>,
    tools: Vec<Arc<dyn Tool>>,
}

impl World {
    async fn new() -> Self {
        let session = Arc::new(session());
        run(&session, TRAPS).await;
        run(&session, REPLACED).await;
        let tools = rondo_python::tools(&session, ReadOnlyNames::WithoutCalls);
        Self { session, tools }
    }

    async fn look(&self, name: &str, expr: &str) -> ToolOutcome {
        looked(&self.tools, name, expr).await
    }

    async fn told(&self, name: &str, expr: &str) -> Value {
        match self.look(name, expr).await {
            ToolOutcome::Ok(output) => output.value,
            ToolOutcome::Error(error) => panic!("{expr}: {error:?}"),
        }
    }

    async fn repr(&self, expr: &str) -> String {
        let told = self.told("get_repr", expr).await;
        told["repr"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_look_runs_no_code_of_the_objects_it_meets() {
    let world = World::new().await;
    // The end of the last cell flushes its streams.
    let before = "['flush', 'flush']";
    assert_eq!(world.repr("ran").await, before);
    for path in PATHS.split(' ') {
        for name in LOOKS {
            world.look(name, path).await;
        }
    }
    for name in ["list_globals", "get_last_exception"] {
        assert!(world.look(name, "x").await.is_ok(), "{name}");
    }
    world.session.global_names().await.unwrap();
    for text in [
        "trap.",
        "trap.made.",
        "shown.inner.x",
        "module.",
        "late.m",
        "Trap.",
        "with_twins.",
    ] {
        world.session.complete(text).await.unwrap();
    }
    assert_eq!(world.repr("ran").await, before);
}

#[tokio::test]
async fn a_look_tells_what_is_stored() {
    let world = World::new().await;
    for (path, repr) in [
        ("shown.x", "3"),
        (
            "shown",
            "<__main__.Open object: x=3, inner=<__main__.Trap object>>",
        ),
        ("Trap", "<class '__main__.Trap'>"),
        (
            "slots",
            "<__main__.Slots object: a=[<__main__.Trap object>]>",
        ),
        ("nested[5]", "(<__main__.Trap object>,)"),
        ("nested['t']", "{1, 2}"),
        ("mine['list']", "<__main__.Mylist object: []>"),
        ("mine['int']", "<__main__.Myint object: 0>"),
        (
            "error",
            "<__main__.Failure object: (<__main__.Trap object>, 5)>",
        ),
        ("module.x", "7"),
        ("twice", "8"),
        ("twins['y']", "2"),
        ("with_twins.x", "9"),
        ("function", "<function function>"),
        (
            "shown.method",
            "<bound method <function Open.method> of <__main__.Open object>>",
        ),
        (
            "Enough.make",
            "<bound method <function Enough.make> of <builtins.type object>>",
        ),
        ("Enough.help", "<function Enough.help>"),
        ("sys", "<module 'sys'>"),
        ("len", "<built-in function len>"),
        ("nested['a'][0].__class__", "<class '__main__.Trap'>"),
        ("mine['int'].real", "0"),
    ] {
        assert_eq!(world.repr(path).await, repr, "{path}");
    }
    let told = world.told("inspect", "shown").await;
    let expected = json!({
        "type": {"name": "Open", "module": "__main__", "qualified": "__main__.Open"},
        "repr": {"repr": "<__main__.Open object: x=3, inner=<__main__.Trap object>>", "truncated": false, "original_len": 57},
        "doc": {"doc": "Keeps what it is given.", "truncated": false, "original_len": 23},
        "members": {"members": ["inner", "made", "method", "x"], "truncated": false, "original_len": 4},
        "signature": null,
        "source": told["source"],
    });
    assert_eq!(told, expected);
    let source = told["source"]["source"].as_str().unwrap();
    assert!(
        source.starts_with("class Open(metaclass=Meta):\n") && source.ends_with("**named): pass")
    );
    let told = world.told("inspect", "shown.method").await;
    assert_eq!(told["signature"], "(a, b=5, *rest, c, d=6, **named)");
    let source = "    def method(self, a, b=5, *rest, c, d=6, **named): pass\n";
    assert_eq!(told["source"]["source"], source);
    let told = world.told("inspect", "function").await;
    let signature = "(a, b=<__main__.Trap object>, *, c=<__main__.Trap object>)";
    assert_eq!(
        (&told["signature"], &told["doc"]["doc"]),
        (&json!(signature), &json!("Does."))
    );
}

#[tokio::test]
async fn what_only_code_could_tell_is_a_failed_look() {
    let world = World::new().await;
    for (path, message) in [
        ("missing", "NameError: name 'missing' is not defined"),
        (
            "trap.made",
            "AttributeError: Trap: `made` is computed by code, and a look runs none",
        ),
        (
            "trap.found",
            "AttributeError: Trap: `found` is computed by code, and a look runs none",
        ),
        ("trap.x", "AttributeError: Trap: no attribute `x` is stored"),
        (
            "trap[0]",
            "TypeError: Trap: its items are computed by code, and a look runs none",
        ),
        ("nested['b']", "KeyError: 'b'"),
        ("nested['a'][9]", "IndexError: 9 is out of range"),
        (
            "slots.b",
            "AttributeError: Slots: no attribute `b` is stored",
        ),
    ] {
        let ToolOutcome::Error(error) = world.look("get_repr", path).await else {
            panic!("{path}")
        };
        assert_eq!(
            (error.code, error.message.as_str()),
            (ToolErrorCode::PythonException, message),
            "{path}"
        );
        let traceback = format!("Traceback (most recent call last):\n{message}\n");
        assert_eq!(error.details["traceback"], traceback);
    }
}

#[tokio::test]
async fn a_look_is_told_as_the_interpreter_does_where_it_knows_the_type_itself() {
    let session = Arc::new(session());
    let code = "import datetime, collections\n\
                cycle = [1]\ncycle.append(cycle)\n\
                values = [None, True, -5, 1.5, 2j, 'it\\'s', b'\\x00', bytearray(b'b'), [], (), (1,), {}, set(), \
                frozenset(), frozenset([1]), {'a': {2: [3]}}, range(1, 9, 2), slice(1, None), ..., NotImplemented, \
                int, len, datetime.date(2026, 1, 2), datetime.timedelta(1, 2)]\n\
                zoned = datetime.datetime(2026, 1, 2, tzinfo=datetime.timezone.utc)\n\
                Point = collections.namedtuple('Point', 'x y')\npoint = Point(1, 2)\n\
                counted = collections.Counter('aab')\n\
                many = list(range(100_000))\nlong = 'x' * (2 << 20)\nbig = 1 << 100_000\n\
                deep = []\nfor _ in range(100): deep = [deep]\n";
    run(&session, code).await;
    let tools = rondo_python::tools(&session, ReadOnlyNames::WithoutCalls);
    let world = World { session, tools };
    let own = repr(&world.session, "values").await;
    let own = own.replace("<class 'int'>", "<class 'builtins.int'>");
    assert_eq!(world.repr("values").await, own);
    for (path, repr) in [
        ("cycle", "[1, ...]"),
        ("zoned", "<datetime.datetime object>"),
        ("zoned.year", "2026"),
        ("point", "<__main__.Point object: (1, 2)>"),
        ("counted", "<collections.Counter object: {'a': 2, 'b': 1}>"),
        ("counted['a']", "2"),
        ("big", "<int of 100001 bits>"),
    ] {
        assert_eq!(world.repr(path).await, repr, "{path}");
    }
    for path in ["many", "long"] {
        let told = world.told("get_repr", path).await;
        let kept = told["repr"].as_str().unwrap().chars().count();
        assert_eq!((kept, &told["truncated"]), (4096, &json!(true)), "{path}");
    }
    assert_eq!(world.told("get_repr", "deep").await["truncated"], true);
    for capability in Capability::ALL.into_iter().filter(|it| !it.runs_code()) {
        assert!(world.look(capability.name(), "values").await.is_ok());
    }
}
