#!/usr/bin/env -S rondo run
-- test_fixer.lua [COMMAND...]: has an agent change files until the tests pass, at most five times.

local command = #rondo.args > 0 and table.concat(rondo.args, " ") or "make test"

local fixer = rondo.agent {
  name = "fixer",
  system = "You repair programs so that their tests pass. Change what is wrong, never the tests.",
  tools = { "read_file", "edit_file", "write_file", "list_files", "search_files" },
  allow = { "edit_file", "write_file" },
  limits = { steps = 25, tokens = 200000 },
}

local conversation
for round = 1, 5 do
  local result = rondo.exec(command, { timeout = 600 })
  if result.ok then
    print("the tests pass after " .. round - 1 .. " changes")
    os.exit(0)
  end
  local report = "`" .. command .. "` failed:\n" .. result.stdout:sub(-8000)
  conversation = conversation and conversation | report or report | fixer
  print("round " .. round .. ": " .. conversation.text)
end
rondo.log("the tests still fail")
os.exit(1)
