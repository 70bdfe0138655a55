-- The one decision: the twin of decide.ts, where the reasons are.
-- A cell is { algorithm, rule, cost, ticket, state, written, changed }; `written` is nil when there is no such key.

local function settle(cell, nowUs)
  if cell.written then
    cell.changed = cell.algorithm.settle(cell.rule, cell.written, cell.state, nowUs)
  else
    cell.state = cell.algorithm.fresh(cell.rule, nowUs)
    cell.changed = false
  end
end

local function askOne(cell, nowUs, aheadUs, verdict)
  local rule, cost = cell.rule, cell.cost
  verdict.delayUs = 0
  verdict.retryUs = 0
  if cost > rule.capacity then
    verdict.outcome = 'impossible'
    return false
  end
  verdict.outcome = 'allowed'
  if cost == 0 then
    return true
  end
  local waitUs = cell.algorithm.waitUs(rule, cell.state, nowUs, cost)
  local actUs = waitUs
  if cell.algorithm.delayUs then
    actUs = cell.algorithm.delayUs(rule, cell.state, nowUs)
  end
  -- A reservation is bounded by when it may act, an ordinary charge only by whether it fits.
  local untilUs = aheadUs >= 0 and actUs or waitUs
  local allowedAheadUs = cell.algorithm.bookable and aheadUs >= 0 and aheadUs or 0
  if untilUs > allowedAheadUs then
    verdict.outcome = 'limited'
    verdict.retryUs = untilUs - allowedAheadUs
    return false
  end
  verdict.delayUs = actUs
  return true
end

local function ask(cells, nowUs, aheadUs, verdicts)
  local granted = true
  for k = 1, #cells do
    if not askOne(cells[k], nowUs, aheadUs, verdicts[k]) then
      granted = false
    end
  end
  return granted
end

local function charge(cell, nowUs)
  if cell.cost == 0 then
    return
  end
  cell.algorithm.take(cell.rule, cell.state, nowUs, cell.cost)
  cell.changed = true
end

local function giveBack(cell, nowUs, ofUs)
  local rule, ticket, cost = cell.rule, cell.ticket, cell.cost
  if not cell.written or cost == 0 then
    return
  end
  if not ticket then
    if cell.algorithm.give(rule, cell.state, nowUs, cost, ofUs) then
      cell.changed = true
    end
  elseif ticket.numbers == rule.numbers then
    if cell.algorithm.cancel(rule, cell.state, nowUs, cost, ticket.words) then
      cell.changed = true
    end
  end
end

local function describe(cell, verdict, nowUs, reserved)
  verdict.remaining = cell.algorithm.remaining(cell.rule, cell.state, nowUs)
  verdict.resetUs = cell.algorithm.resetUs(cell.rule, cell.state, nowUs)
  if reserved and cell.cost > 0 and cell.algorithm.bookable then
    verdict.ticket = cell.state
  end
end

local function decide(op, cells, nowUs, aheadUs, ofUs)
  local verdicts = {}
  for k = 1, #cells do
    verdicts[k] = { outcome = 'allowed', retryUs = 0, delayUs = 0 }
    settle(cells[k], nowUs)
  end
  local granted = true
  if op == 'give' then
    for k = 1, #cells do
      giveBack(cells[k], nowUs, ofUs)
    end
  else
    granted = ask(cells, nowUs, aheadUs, verdicts)
  end
  local taken = op == 'take' and granted
  for k = 1, #cells do
    if taken then
      charge(cells[k], nowUs)
    end
    describe(cells[k], verdicts[k], nowUs, taken and aheadUs >= 0)
  end
  return verdicts
end
