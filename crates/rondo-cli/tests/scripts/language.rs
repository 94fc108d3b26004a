//! Parts of Lua that scripts have, and parts that they lack.

use crate::harness::serve;
use crate::world::World;

async fn output(script: &str) -> String {
    let world = World::new(script, serve(Vec::new()).await);
    let shown = world.run(&[]).await;
    assert_eq!(shown.code, Some(0), "{shown:?}");
    shown.stdout
}

#[tokio::test]
async fn nothing_of_lua_reaches_files_processes_or_native_code() {
    let script = r#"
for _, name in ipairs { "dofile", "loadfile", "collectgarbage", "debug", "package" } do
  print(name, _G[name])
end
print(os.execute, os.remove, os.rename, os.tmpname, io.popen, io.open, string.dump)
print(load("return 1 + 1")(), load("\27Lua"))
print(pcall(setmetatable, {}, { __gc = print }))
print(pcall(require, "../secret"))
"#;
    let shown = output(script).await;
    assert!(shown.starts_with("dofile\tnil\nloadfile\tnil\ncollectgarbage\tnil\ndebug\tnil\npackage\tnil\nnil\tnil\tnil\tnil\tnil\tnil\tnil\n2\tnil\t"), "{shown}");
    assert!(shown.contains("attempt to load a binary chunk"), "{shown}");
    assert!(shown.contains("`__gc` is not available"), "{shown}");
    assert!(
        shown.contains("require: the name of a module has"),
        "{shown}"
    );
}

#[tokio::test]
async fn tables_are_walked_in_the_same_order_in_each_run() {
    let script = r#"
local t = { 1, 2, 3 }
for _, name in ipairs { "zeta", "alpha", "mid", "omega", "beta" } do t[name] = true end
for key in pairs(t) do io.write(tostring(key), " ") end
for key, value in pairs(setmetatable({}, { __pairs = function() return function(_, k) if not k then return "own", 1 end end end })) do io.write(key, "\n") end
local gone = { a = 1, b = 2 }
for key in pairs(gone) do gone[key] = nil end
print(next(gone))
"#;
    assert_eq!(
        output(script).await,
        "1 2 3 alpha beta mid omega zeta own\nnil\n"
    );
}

#[tokio::test]
async fn coroutines_of_a_script_may_wait() {
    let script = r##"
local co = coroutine.wrap(function(x)
  local y = coroutine.yield(rondo.exec("echo " .. x).stdout)
  rondo.sleep(0.01)
  return rondo.exec("echo " .. y).stdout
end)
io.write(co("one"), co("two"))
local other = coroutine.create(function() rondo.sleep(0.01) error("no", 0) end)
print(coroutine.resume(other))
print(select("#", coroutine.resume(coroutine.create(function() return nil, nil end))))
"##;
    assert_eq!(output(script).await, "one\ntwo\nfalse\tno\n3\n");
}

#[tokio::test]
async fn dates_and_random_numbers_are_those_of_lua() {
    let script = r#"
print(os.date("!%Y-%m-%d %H:%M:%S", 86400), os.date("!*t", 0).year, os.time({ year = 2026, month = 1, day = 2 }) > 0)
for _ = 1, 1000 do
  local whole, part = math.random(3), math.random()
  assert(whole >= 1 and whole <= 3 and part >= 0 and part < 1)
end
print(math.type(math.random(5, 5)), pcall(math.random, 2, 1))
print(os.time() >= 1600000000, os.clock() >= 0)
"#;
    let shown = output(script).await;
    assert!(
        shown.starts_with("1970-01-02 00:00:00\t1970\ttrue\ninteger\tfalse\t"),
        "{shown}"
    );
    assert!(shown.ends_with("true\ttrue\n"), "{shown}");
}

#[tokio::test]
async fn parameters_of_tools_are_given_by_name_or_as_a_schema() {
    let script = r#"
local function try(parameters) return pcall(rondo.tool, { name = "t", parameters = parameters, run = print }) end
print(try { a = "string", b = "integer?", c = { type = "array", optional = true } })
print(try { type = "object", properties = { a = { type = "string" } } })
print(try { a = "strnig" })
print(pcall(rondo.tool, { name = "no name", run = print }))
"#;
    let shown = output(script).await;
    let lines: Vec<&str> = shown.lines().collect();
    assert!(
        lines[0].starts_with("true\ttool t") && lines[1].starts_with("true\ttool t"),
        "{shown}"
    );
    assert!(lines[2].contains("has no type `strnig`"), "{shown}");
    assert!(lines[3].contains("is not a tool name"), "{shown}");
}
