-- The one decision: the twin of decide.ts, where the reasons are.
-- A cell is { algorithm, rule, cost, ticket, state, written, changed }; `written` is nil when there is no such key.
-- The answers are written over `verdicts`, one table for each cell.

local function settle(cell, nowUs)
  if cell.written then
    cell.changed = cell.algorithm.settle(cell.rule, cell.written, cell.state, nowUs)
  else
    cell.state = cell.algorithm.fresh(cell.rule, nowUs)
    cell.changed = false
  end
end

local function answer(verdict, outcome, retryUs, delayUs)
  verdict.outcome, verdict.retryUs, verdict.delayUs = outcome, retryUs, delayUs
  return outcome == 'allowed'
end

local function askOne(cell, nowUs, aheadUs, verdict)
  local algorithm, rule, cost = cell.algorithm, cell.rule, cell.cost
  if cost > rule.capacity then
    return answer(verdict, 'impossible', 0, 0)
  elseif cost == 0 then
    return answer(verdict, 'allowed', 0, 0)
  end
  local waitUs = algorithm.waitUs(rule, cell.state, nowUs, cost)
  local actUs = waitUs
  if algorithm.delayUs then
    actUs = algorithm.delayUs(rule, cell.state, nowUs)
  end
  -- A reservation is bounded by when it may act, an ordinary charge only by whether it fits.
  local untilUs = aheadUs >= 0 and actUs or waitUs
  local allowedAheadUs = algorithm.bookable and aheadUs >= 0 and aheadUs or 0
  if untilUs > allowedAheadUs then
    return answer(verdict, 'limited', untilUs - allowedAheadUs, 0)
  end
  return answer(verdict, 'allowed', 0, actUs)
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

local function describe(cell, verdict, nowUs, taken, reserved)
  local algorithm, rule, state = cell.algorithm, cell.rule, cell.state
  verdict.enteredUs = taken and cell.cost > 0 and algorithm.enteredUs(state, nowUs) or nowUs
  verdict.remaining = algorithm.remaining(rule, state, nowUs)
  verdict.resetUs = algorithm.resetUs(rule, state, nowUs)
  verdict.ticket = reserved and cell.cost > 0 and algorithm.bookable and state
end

local function decide(op, cells, nowUs, aheadUs, ofUs, verdicts)
  for k = 1, #cells do
    settle(cells[k], nowUs)
  end
  local granted = true
  if op == 'give' then
    for k = 1, #cells do
      giveBack(cells[k], nowUs, ofUs)
      answer(verdicts[k], 'allowed', 0, 0)
    end
  else
    granted = ask(cells, nowUs, aheadUs, verdicts)
  end
  local taken = op == 'take' and granted
  for k = 1, #cells do
    if taken then
      charge(cells[k], nowUs)
    end
    describe(cells[k], verdicts[k], nowUs, taken, taken and aheadUs >= 0)
  end
end
