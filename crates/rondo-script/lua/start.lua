#!/usr/bin/env -S rondo run
-- rondo run NAME.lua [WORDS...]: says what the files of this folder are about.

local files = rondo.tool {
  name = "files",
  description = "Lists the files of a folder.",
  parameters = { folder = "string" },
  read_only = true,
  run = function(given)
    return table.concat(rondo.files.list(given.folder), "\n")
  end,
}

local agent = rondo.agent {
  name = "guide",
  system = "You explain folders in a few sentences.",
  tools = { files, "read_file" },
  limits = { steps = 10 },
}

local question = #rondo.args > 0 and table.concat(rondo.args, " ") or "What is the folder `.` about?"
local answer = question | agent
print(answer.text)

if answer.stop_reason ~= "complete" then
  rondo.log("it ended early: " .. answer.stop_reason)
  os.exit(3)
end
