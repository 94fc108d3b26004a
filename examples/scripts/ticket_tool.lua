-- A tool for every session, also those of a chat: tickets are files in the folder `tickets`, and nothing that is called
-- may touch that folder otherwise. Copy it into the `init.lua` of the machine that answers.

rondo.tool {
  name = "ticket",
  description = "Reads a ticket by its number.",
  parameters = { number = "integer" },
  read_only = true,
  run = function(given)
    local found = rondo.exec(string.format("cat tickets/%d.txt", math.tointeger(given.number) or 0))
    if not found.ok then
      error("there is no ticket " .. given.number, 0)
    end
    return found.stdout
  end,
}

rondo.on("before_tool", function(call)
  if call.tool ~= "ticket" and rondo.json.encode(call.arguments):find("tickets", 1, true) then
    return { deny = "tickets are read by the tool `ticket` only" }
  end
end)
