#!/usr/bin/env -S rondo run
-- debate.lua QUESTION: two agents argue for two rounds, and a third one sums up.

local question = table.concat(rondo.args, " ")
local function debater(name, side)
  return rondo.agent {
    name = name,
    system = "You are " .. name .. ". You argue " .. side .. ". Answer the other side in three sentences.",
  }
end

local ada, bob = debater("Ada", "for it"), debater("Bob", "against it")
local said_by_ada = question | ada
local said_by_bob
for round = 1, 2 do
  print("Ada: " .. said_by_ada)
  said_by_bob = said_by_bob and said_by_bob | said_by_ada.text or question .. "\nAda says: " .. said_by_ada | bob
  print("Bob: " .. said_by_bob)
  if round < 2 then
    said_by_ada = said_by_ada | said_by_bob.text
  end
end

-- The third one takes the conversation over, so it reads all that Bob has read.
print("Summary: " .. (said_by_bob | rondo.agent { name = "Eve", system = "Sum up who made the better points." }))
