#!/usr/bin/env -S rondo run
-- extract.lua FILE...: the people and sums in letters, as one JSON object a line.

local reader = rondo.agent {
  name = "reader",
  system = "You extract data from letters. What is not in the letter is null.",
  schema = {
    type = "object",
    properties = {
      sender = { type = { "string", "null" } },
      amount = { type = { "number", "null" } },
      due = { type = { "string", "null" }, description = "as YYYY-MM-DD" },
    },
    required = { "sender", "amount", "due" },
    additionalProperties = false,
  },
}

for _, file in ipairs(rondo.args) do
  local answer = rondo.files.read(file) | reader
  if not answer.data then
    rondo.log(file .. ": " .. answer.text)
    os.exit(1)
  end
  answer.data.file = file
  print(rondo.json.encode(answer.data))
end
