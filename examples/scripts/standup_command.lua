-- A command of the prompt: `/standup` sums up your commits since yesterday, and Ctrl-G enters it.
-- Copy it into ~/.config/rondo/init.lua, or have that file read it.

rondo.command {
  name = "standup",
  description = "sum up what was committed since yesterday",
  run = function(words)
    local log = rondo.exec("git log --since=yesterday --oneline " .. (words ~= "" and words or "HEAD"))
    if not log.ok or log.stdout == "" then
      return "nothing was committed since yesterday"
    end
    return { ask = "Sum this up for a stand-up meeting, in three lines:\n" .. log.stdout }
  end,
}

rondo.key { key = "ctrl-g", command = "/standup" }
