//! Python at the prompt.

use crate::calls::mkfifo;
use crate::harness::{TestEnv, calls, says, serve};
use crate::person::{CTRL_C, CTRL_D, ENTER, Person, TAB};
use crate::repl::{leave, messages, said, start};
use rondo_testkit::{CallScript, Recorded, ReplyScript, Script, Server, assert_paired, gemini};
use serde_json::json;

async fn at_python(env: &TestEnv, server: &Server) -> Person {
    let mut person = start(env, server, &["--mode", "python"]);
    person.prompt("python").await;
    person
}

#[tokio::test]
async fn cells_share_their_names_and_values_are_echoed() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = at_python(&env, &server).await;
    person.enter("x = 6").await;
    person.prompt("python").await;
    person.enter("x * 7").await;
    person.sees("\n42\n").await;
    person.prompt("python").await;
    person.enter("_ + 1").await;
    person.sees("\n43\n").await;
    person.prompt("python").await;
    person.press("def f():\r    return x\r\r").await;
    // The earlier prompt has what `prompt` looks for until these keys show.
    person.sees_below("return x\n", ">>>").await;
    person.prompt("python").await;
    person.enter("f()").await;
    person.sees("\n6\n").await;
    person.prompt("python").await;
    person.enter("print('日本'); x").await;
    person.sees("\n日本\n6\n").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn names_and_attributes_are_completed() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = at_python(&env, &server).await;
    person.enter("numbers_of_mine = [1, 2]").await;
    person.prompt("python").await;
    person.press("numbers_of").await;
    person.types_behind("numbers_of").await;
    person.press(TAB).await;
    person.types_behind("numbers_of_mine").await;
    person.press(".appe").await;
    person.types_behind(".appe").await;
    person.press(TAB).await;
    person.types_behind("numbers_of_mine.append").await;
    person.press(CTRL_C).await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn a_cell_is_interrupted_and_its_names_stay() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = at_python(&env, &server).await;
    person.enter("x = 1; print('on my way')").await;
    person.sees("\non my way").await;
    person.prompt("python").await;
    person
        .press("print('begun')\x1b\rwhile True: pass\r\r")
        .await;
    person.sees("\nbegun").await;
    person.press(CTRL_C).await;
    person.sees("KeyboardInterrupt").await;
    person.prompt("python").await;
    // The user stopped it and knows why.
    assert!(!person.all().contains("Alt-A"), "{}", person.all());
    person.enter("x + 1").await;
    person.sees("\n2\n").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn the_agent_is_asked_about_what_failed_with_one_key() {
    let server = serve(vec![says("You divided by zero.")]).await;
    let env = TestEnv::new();
    let mut person = at_python(&env, &server).await;
    person.enter("1 / 0").await;
    person.sees("ZeroDivisionError: division by zero").await;
    person.sees("Alt-A asks the agent about it").await;
    person.prompt("python").await;
    person.press("\x1ba").await;
    person.sees("You divided by zero.").await;
    person.prompt("python").await;
    person.enter("/last_error").await;
    person.prompt("python").await;
    // It still stands where it was said.
    person.sees("You divided by zero.").await;
    leave(person).await;
    let asked = said(&server, 0);
    assert!(asked[0].contains("1 / 0") && asked[0].contains("ZeroDivisionError"));
}

#[tokio::test]
async fn the_agent_looks_into_the_session_that_the_user_works_in() {
    let server = serve(vec![
        calls("run_code", &json!({"code": "y = x + 1"})),
        says("I made y."),
    ])
    .await;
    let env = TestEnv::new();
    let mut person = start(&env, &server, &["--yolo"]);
    person.prompt("agent").await;
    person.enter(">x = 41").await;
    person.prompt("agent").await;
    person.enter("make y").await;
    person.sees("I made y.").await;
    person.prompt("agent").await;
    person.enter(">y").await;
    person.sees("\n42\n").await;
    person.prompt("agent").await;
    person.enter("/inspect y").await;
    person.sees("type: builtins.int").await;
    person.prompt("agent").await;
    leave(person).await;
    assert_eq!(messages(&server, 1).len(), 4);
}

/// The acceptance of the design: a question about a live session, calls in one reply, an answer.
#[tokio::test]
async fn py_36_py_40_py_42_the_design_answers_out_of_the_session_at_the_prompt() {
    let answer = |request: &Recorded| {
        let body = request.json();
        assert_paired(&body);
        let contents = body["contents"].as_array().unwrap();
        let call = |name: &str, expr: &str| CallScript::without_id(name, &json!({"expr": expr}));
        gemini::whole(&match contents.get(2) {
            None => ReplyScript::calls([call("get_type", "ages"), call("eval_expr", "sum(ages)")]),
            Some(results) => {
                let parts = results["parts"].as_array().unwrap();
                let result = |at: usize| &parts[at]["functionResponse"]["response"]["result"];
                let kind = result(0)["qualified"].as_str().unwrap();
                let sum = result(1)["value_repr"].as_str().unwrap();
                ReplyScript::text([format!("A {kind} that sums to {sum}.")])
            }
        })
    };
    let server = Server::start(Script::answering(answer)).await;
    let env = TestEnv::new()
        .var("GEMINI_API_KEY", "k-123456789")
        .var("GEMINI_MODEL", "gemini-2.5-flash")
        .var("GOOGLE_GEMINI_BASE_URL", &server.url(""));
    let mut person = Person::start(&env, &["repl", "--profile", "python", "--mode", "python"]);
    person.prompt("python").await;
    person.enter("ages = [40, 2]").await;
    person.prompt("python").await;
    for _ in 0..2 {
        person.enter("# What is ages?").await;
        person.sees("A builtins.list that sums to 42.").await;
        person.prompt("python").await;
    }
    leave(person).await;
    assert_eq!(server.requests().len(), 4);
}

#[tokio::test]
async fn two_quick_interrupts_end_no_interpreter_and_a_late_one_is_announced() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = at_python(&env, &server).await;
    person.enter("kept = 41").await;
    person.prompt("python").await;
    // Blocked, an interrupt does what it does to C code that looks for none.
    person.enter("import signal as s, time").await;
    person.prompt("python").await;
    person
        .enter("b = s.pthread_sigmask(s.SIG_BLOCK, [2])")
        .await;
    person.prompt("python").await;
    person
        .enter("print('begun'); time.sleep(1.5); print('over')")
        .await;
    person.sees("\nbegun").await;
    person.press(CTRL_C).await;
    person.press(CTRL_C).await;
    person
        .sees("ends the interpreter and loses its variables")
        .await;
    // The terminal shows the key before it.
    person.sees("over\n").await;
    person.prompt("python").await;
    person.enter("kept + 1").await;
    person.sees("\n42").await;
    person.prompt("python").await;
    leave(person).await;
}

#[tokio::test]
async fn a_cell_reads_what_is_typed_and_is_debugged_at_the_prompt() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = at_python(&env, &server).await;
    let before = person.settings();
    person.enter("name = input('name? ')").await;
    person.types_behind("name? ").await;
    person.press("Adx\x7fa").await;
    person.types_behind("name? Ada").await;
    person.press(ENTER).await;
    person.prompt("python").await;
    person.enter("name").await;
    person.sees("\n'Ada'\n").await;
    person.prompt("python").await;
    person.enter("input('more? ')").await;
    person.types_behind("more? ").await;
    person.press(CTRL_D).await;
    person.sees("EOFError").await;
    person.prompt("python").await;
    person.enter("input('again? ')").await;
    person.types_behind("again? ").await;
    // A line editor that is waiting for keys notices an interrupt with the next one.
    person.press("\x03\r").await;
    person.sees("KeyboardInterrupt").await;
    person.prompt("python").await;
    person
        .press("def f(n):\r    breakpoint()\r    return n + 1\r\r")
        .await;
    // The earlier prompt has what `prompt` looks for until these keys show.
    person.sees_below("return n + 1\n", ">>>").await;
    person.prompt("python").await;
    person.enter("f(1)").await;
    person.types_behind("(Pdb) ").await;
    person.press("!n = 41\r").await;
    person.sees_below("!n = 41", "(Pdb) ").await;
    person.press("c\r").await;
    person.sees("\n42\n").await;
    person.prompt("python").await;
    assert_eq!(person.settings(), before);
    leave(person).await;
}

#[tokio::test]
async fn exit_leaves_python_mode_and_the_variables_stay() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    std::fs::write(env.project().join("lines"), "x = 6\nexit()\nx * 7\n").unwrap();
    let mut person = at_python(&env, &server).await;
    person.enter("/run lines").await;
    person
        .sees("note: the interpreter goes on, with its variables")
        .await;
    person.sees("1 line that was to follow is dropped").await;
    person.prompt("agent").await;
    person.enter(">x + 1").await;
    person.sees("\n7\n").await;
    person.prompt("agent").await;
    leave(person).await;
    assert!(server.requests().is_empty());
}

#[tokio::test]
async fn what_a_thread_prints_is_shown_at_once_above_the_line_and_not_again() {
    let server = serve(Vec::new()).await;
    let env = TestEnv::new();
    let mut person = at_python(&env, &server).await;
    // The thread waits until its output is written.
    let fifo = env.project().join("fifo");
    mkfifo(&fifo);
    for line in [
        "import threading as t",
        "f = lambda: print(open('fifo').read())",
        "t.Thread(target=f).start()",
    ] {
        person.enter(line).await;
        person.prompt("python").await;
    }
    person.press("6 * 7").await;
    person.types_behind("6 * 7").await;
    std::fs::write(&fifo, "from a thread").expect("the thread reads");
    person.sees("from a thread").await;
    person.types_behind("6 * 7").await;
    person.press(ENTER).await;
    person.sees("\n42\n").await;
    person.prompt("python").await;
    let shown = person.screen();
    assert_eq!(shown.matches("from a thread").count(), 1, "{shown}");
    leave(person).await;
}
