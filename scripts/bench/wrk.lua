-- Load for wrk: every request carries the next number in its body, or the same where the step is 0. Made once, cut where the number stands.
local before, after = os.getenv("BENCH_BODY_BEFORE"), os.getenv("BENCH_BODY_AFTER")
local digits = tonumber(os.getenv("BENCH_BODY_DIGITS"))
local number, step = tonumber(os.getenv("BENCH_BODY_NUMBER")), tonumber(os.getenv("BENCH_BODY_STEP"))
local format = "%0" .. digits .. ".0f"
local head

function init()
  wrk.method = "POST"
  for line in os.getenv("BENCH_HEADERS"):gmatch("[^\n]+") do
    local name, value = line:match("^([^:]+): (.*)$")
    wrk.headers[name] = value
  end
  wrk.body = before .. string.rep("0", digits) .. after
  local raw = wrk.format()
  head = raw:sub(1, #raw - #after - digits)
end

function request()
  number = number + step
  return head .. format:format(number) .. after
end

function done(summary)
  local errors = summary.errors
  local failed = errors.connect + errors.read + errors.write + errors.status + errors.timeout
  io.write(("\nBENCH %d %d %d\n"):format(summary.requests, summary.duration, failed))
end
