#!/usr/bin/env -S rondo run
-- changelog.lua FROM: adds what changed since a commit to CHANGELOG.md.

local from = rondo.args[1] or error("usage: changelog.lua FROM", 0)
local log = rondo.exec({ "git", "log", "--reverse", "--format=- %s%n%w(0,2,2)%b", from .. "..HEAD" })
if not log.ok then
  error(log.stdout, 0)
end

local writer = rondo.agent {
  name = "writer",
  system = "You turn commits into a list for the users of a program: one line for each change that they notice, "
    .. "each beginning with `- `. Leave out everything else.",
  limits = { tokens = 50000 },
}

local entry = "## " .. os.date("!%Y-%m-%d") .. "\n\n" .. (log.stdout | writer).text .. "\n\n"
local old = rondo.files.exists("CHANGELOG.md") and rondo.files.read("CHANGELOG.md") or ""
rondo.files.write("CHANGELOG.md", entry .. old)
io.write(entry)
