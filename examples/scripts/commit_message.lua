#!/usr/bin/env -S rondo run
-- Writes a commit message for what is staged, asks, and commits.

local diff = rondo.exec("git diff --cached --stat --patch").stdout
if diff == "" then
  rondo.log("nothing is staged")
  os.exit(1)
end

local writer = rondo.agent {
  name = "writer",
  system = "You write commit messages: a line of at most 72 characters, an empty line, and why. Nothing else.",
}

local message = diff | writer
while true do
  print(message.text)
  local answer = rondo.ask("Commit this?", { choices = { "y", "n", "again" }, default = "n" })
  if answer == "y" then
    rondo.files.write(".git/MESSAGE", message.text .. "\n")
    io.write(rondo.exec("git commit --quiet --file .git/MESSAGE && git log -1 --format=%s").stdout)
    break
  elseif answer == "n" then
    os.exit(1)
  end
  message = message | rondo.ask("What should be different?")
end
