// Why a mutant that no test notices is equivalent: the list that equivalent.mjs reads, in the order of the report.
//
// A proof names a file, the function, the line, and what the line becomes in one mutant or in several. If a function has the same line and the
// same change more than once, the second one's ends with ` (2)`. Or it names a change that is made `everywhere` in a file.

export const PROOFS = [
  {
    file: 'src/algorithms/arithmetic.ts',
    scope: '',
    line: 'export const remainder: Float64Array = new Float64Array(1)',
    becomes: ['export const remainder: Float64Array = new Float64Array(2)'],
    proof: 'Only index 0 is ever read or written: a second element is eight bytes that nobody looks at.',
  },
  {
    file: 'src/algorithms/arithmetic.ts',
    scope: 'mulDiv',
    line: 'return product <= MAX_EXACT ? divide(product, c) : mulDivWide(a, b, c)',
    becomes: ['return (mulDivWide(a, b, c))', 'return product < MAX_EXACT ? divide(product, c) : mulDivWide(a, b, c)'],
    proof:
      'The slow path is exact for all operands, small ones too (for a = 0 `bit` falls to 0 and the loop is not entered): the fast path gives the same quotient and remainder sooner.',
  },
  {
    file: 'src/algorithms/arithmetic.ts',
    scope: 'mulDivWide',
    line: 'let bit = 2 ** 52',
    becomes: ['let bit = 2 ** 53'],
    proof: 'The next line halves `bit` until it is at most a, which is below 2^53: from either start it ends at the same power of two.',
  },
  {
    file: 'src/algorithms/arithmetic.ts',
    scope: 'mulAddDiv',
    line: 'if (add === 0) return whole',
    becomes: ['if (false) return whole'],
    proof:
      'With nothing to add, dividing the remainder, which is below c, gives the quotient 0 and leaves the same remainder: the line only saves a division.',
  },
  {
    file: 'src/algorithms/arithmetic.ts',
    scope: 'mulAddDivUp',
    line: 'return sum <= MAX_EXACT ? Math.ceil(sum / c) : mulAddDivUpWide(a, b, add, c)',
    becomes: ['return (mulAddDivUpWide(a, b, add, c))', 'return sum < MAX_EXACT ? Math.ceil(sum / c) : mulAddDivUpWide(a, b, add, c)'],
    proof: 'The slow path is exact for small sums too: the fast path gives the same number sooner.',
  },
  {
    file: 'src/algorithms/level.ts',
    everywhere: ['i + TAT', 'i - TAT'],
    proof: 'TAT is 0.',
  },
  {
    file: 'src/algorithms/level.ts',
    everywhere: ['return -1', 'return -2'],
    proof: 'Where nothing was given back, only the sign is looked at.',
  },
  {
    file: 'src/algorithms/level.ts',
    everywhere: [': -1', ': -2'],
    proof: 'Where nothing was given back, only the sign is looked at.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelUntilUs',
    line: 'if (us < 0) return 0',
    becomes: ['if (false) return 0'],
    proof:
      'Below 0 a whole number is at most -1. The room takes nothing less than 0 away from it, and the part adds one microsecond at most: what is returned is 0 as well.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelUntilUs',
    line: 'if (room === own.capacity - 1) {',
    becomes: ['if (false) {'],
    proof: 'The other branch computes for this room the same mulDiv(capacity - 1, periodUs, permits) that the rule has ready.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelDueUs',
    line: 'if (isSamePace(own, to)) return levelUntilUs(to, s, i, nowUs, to.capacity - cost)',
    becomes: ['if (false) return levelUntilUs(to, s, i, nowUs, to.capacity - cost)'],
    proof:
      'At one pace `convert` changes nothing: whole x periodUs + rest is us x permits + part, the rest is below periodUs and is not rounded, and divided by permits that is (us, part) again. The answer that is counted from 0 is the same, with the same atUs - nowUs added.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelDrainedUs',
    line: 'if (isSamePace(own, to)) return levelUntilUs(to, s, i, nowUs, 0)',
    becomes: ['if (false) return levelUntilUs(to, s, i, nowUs, 0)'],
    proof: 'At one pace `convert` changes nothing, as in `levelDueUs`.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelCharge',
    line: 'if (own !== to) convert(own, to, s, i, atUs)',
    becomes: ['if (true) convert(own, to, s, i, atUs)'],
    proof: 'One rule has one pace, at which `convert` returns at once: the line only saves a call.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelCharge',
    line: 'if (cost === 1) {',
    becomes: ['if (false) {'],
    proof: 'The other branch computes for a cost of 1 the same mulDiv(1, periodUs, permits) that the rule has ready as its interval.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelGiveRest',
    line: 'const most = mostUs > 0 ? mulDiv(mostUs, rule.permits, rule.periodUs) : 0',
    becomes: ['const most = mostUs >= 0 ? mulDiv(mostUs, rule.permits, rule.periodUs) : 0'],
    proof: 'mulDiv of 0 is 0.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'giveUpTo',
    line: 'if (mostUs <= 0) return -1',
    becomes: ['if (mostUs < 0) return -1'],
    proof:
      'With 0 the cost takes no less than that, so the last line moves the TAT by nothing, and `moveEarlier` tells that it gave nothing back.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelCancel',
    line: 'if (afterUs > 0 || (afterUs === 0 && afterPart > 0)) {',
    becomes: ['if (afterUs > 0 || (afterUs === 0 && afterPart >= 0)) {'],
    proof:
      'If nothing came after the ticket, the block subtracts (0, 0) from the cost, whose part is from 0 to below `permits`: it changes nothing.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelCancel',
    line: 'if (part < 0) {',
    becomes: ['if (part <= 0) {', 'if (part < 1) {'],
    proof:
      'Parts are whole, so (us, 0) becomes (us - 1, permits), which is the same time. For us = 0 that is nothing, and both return false. Above it `moveEarlier` borrows a microsecond for the second, since no part of a state reaches `permits`, and comes to the same TAT and part.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'levelCancel',
    line: '} else if (part >= own.permits) {',
    becomes: ['} else if (part > own.permits) {'],
    proof:
      '(us, permits) is the same time as (us + 1, 0). For us = -1 that is nothing, and both return false. Above it `moveEarlier` comes to the same TAT and part from both, as above.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'convert',
    line: 'if (us < 0 || isSamePace(own, to)) return',
    becomes: ['if (false) return', 'if ((us < 0 && isSamePace(own, to))) return'],
    proof:
      'At one pace the rest of `convert` changes nothing, as in `levelDueUs`. A level that has drained is at most -1 of the unit of `own`. Expressed at another pace and rounded up it is at most 0, also where the product is too large to be exact, because it is negative by far then. Callers treat a TAT at `atUs` with a part of 0 and any earlier one alike: nothing is in use.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'convert',
    line: 'if (part === to.periodUs) {',
    becomes: ['if (false) {'],
    proof: '(whole, periodUs) is the same level as (whole + 1, 0): the line behind it adds both up to the same sum before it divides.',
  },
  {
    file: 'src/algorithms/gcra/gcra.ts',
    scope: '',
    line: 'spaced: false,',
    becomes: ['spaced: true,'],
    proof:
      'What fits is due now: at its own pace by the same computation, and at another, too, because a level of at most so many whole permits stays that when it is rounded up to the unit of `to`. So `delayUs` is 0 as before. A limiter that takes it for spaced has `acquire` ask its queue, which admits at once what fits.',
  },
  {
    file: 'src/algorithms/token-bucket/token-bucket.ts',
    scope: '',
    line: 'spaced: false,',
    becomes: ['spaced: true,'],
    proof: 'What fits is due now, as in gcra.ts.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'decide',
    line: 'if (isTold) agree(cell.verdict)',
    becomes: ['if (true) agree(cell.verdict)'],
    proof: 'A verdict that is not told is read by nobody: to write it only takes time.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'decide',
    line: 'if (isTold) describe(cell, nowUs, lateUs, isTaken && aheadUs >= 0)',
    becomes: ['if (true) describe(cell, nowUs, lateUs, isTaken && aheadUs >= 0)'],
    proof: 'A verdict that is not told is read by nobody, and `describe` changes nothing else.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'bookableInUs',
    line: 'if (cell.own === cell.rule) return actUs - aheadUs',
    becomes: ['if (false) return actUs - aheadUs'],
    proof:
      'Under one rule what is due comes nearer by a microsecond with every microsecond, also while time stands still for the state, so that the first time at which it is no more than aheadUs away is actUs - aheadUs. That lies above 0 and not behind the time of reset, between which the search looks.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'bookableInUs',
    line: 'const middle = Math.floor((early + late) / 2)',
    becomes: ['const middle = Math.ceil((early + late) / 2)'],
    proof: 'As long as they are more than 1 apart it lies between both, too, and the search ends at the same place from any such middle.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'decide',
    line: 'if (own !== rule) cell.own = rule',
    becomes: ['if (true) cell.own = rule'],
    proof: 'Where both are one already, the assignment changes nothing.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'isCharged',
    line: 'if (cell.own !== cell.rule) cell.own = cell.rule',
    becomes: ['if (true) cell.own = cell.rule'],
    proof: 'Where both are one already, the assignment changes nothing.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'leaveLine',
    line: 'if (cell.ticket === undefined || cell.own.algorithm.stand === undefined) return',
    becomes: ['if ((cell.ticket === undefined && cell.own.algorithm.stand === undefined)) return'],
    proof:
      'Only a limit that has a line gives callers a place (`placeAfter` in queue.ts). A caller without one is searched for under the token 0, which no entry has, so nothing is given up.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'standInLine',
    line: 'if (place > 0) cell.changed = true',
    becomes: ['if (place >= 0) cell.changed = true'],
    proof: 'A place is a token, which is 1 at least, or -1 for none.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'standInLine',
    line: 'cell.verdict.given = place < 0 ? -1 : place === before ? 1 : 0',
    becomes: [
      'cell.verdict.given = place <= 0 ? -1 : place === before ? 1 : 0',
      'cell.verdict.given = place < 1 ? -1 : place === before ? 1 : 0',
    ],
    proof: 'A place is a token, which is 1 at least, or -1 for none.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'charge',
    line: 'if (own !== cell.rule) cell.own = cell.rule',
    becomes: ['if (true) cell.own = cell.rule'],
    proof: 'Where both are one already, the assignment changes nothing.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'settle',
    line: 'if (cell.cost < 0) return giveBack(cell, nowUs, ofUs, -cell.cost, true)',
    becomes: [
      'if (cell.cost <= 0) return giveBack(cell, nowUs, ofUs, -cell.cost, true)',
      'if (cell.cost < 1) return giveBack(cell, nowUs, ofUs, -cell.cost, true)',
    ],
    proof: 'To give nothing back agrees and changes nothing, as the next line does for a cost of 0. Costs are whole.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'giveBack',
    line: 'const given = cell.isHeld ? givenBack(cell, nowUs, ofUs, cost, isRest) : -1',
    becomes: [
      'const given = (givenBack(cell, nowUs, ofUs, cost, isRest))',
      'const given = cell.isHeld ? givenBack(cell, nowUs, ofUs, cost, isRest) : -2',
    ],
    proof:
      'What is not held was cleared, and of a state of nothing every algorithm gives nothing back, which it tells by -1. Only the sign of that is looked at.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'bookedBy',
    line: 'const rule = ticket.numbers === own.numbers ? own : own.algorithm.ruleOf(figuresNamed(ticket.numbers))',
    becomes: ['const rule = (own.algorithm.ruleOf(figuresNamed(ticket.numbers)))'],
    proof: 'The numbers are the figures as text: the rule that is made of them anew has all the numbers of `own`.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'emptyVerdict',
    line: "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined, given: 0 }",
    becomes: [
      "return { outcome: 'allowed', remaining: 1, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined, given: 0 }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 1, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined, given: 0 }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 1, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined, given: 0 }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 1, atUs: 0, enteredUs: 0, ticket: undefined, given: 0 }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 1, enteredUs: 0, ticket: undefined, given: 0 }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 1, ticket: undefined, given: 0 }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined, given: 1 }",
    ],
    proof:
      'Every number of a verdict is written before anybody reads it, by `agree` (retryUs, delayUs), `describe`, and `given` by all that gives back, renews or stands in line. Without `isTold` none is read.',
  },
  {
    file: 'src/algorithms/fixed-window/fixed-window.ts',
    everywhere: ['i + START', 'i - START'],
    proof: 'START is 0.',
  },
  {
    file: 'src/algorithms/fixed-window/fixed-window.ts',
    scope: 'offsetUs',
    line: 'if (us / 1000 !== anchor || Math.abs(us) > Number.MAX_SAFE_INTEGER) {',
    becomes: ['if (us / 1000 !== anchor || Math.abs(us) >= Number.MAX_SAFE_INTEGER) {'],
    proof:
      'No anchor has 2^53 - 1 microseconds: (2^53 - 1) / 1000 is rounded to 9007199254740.990234375, and that anchor has 9007199254740990 of them.',
  },
  {
    file: 'src/algorithms/fixed-window/fixed-window.ts',
    scope: 'charge',
    line: 'if (count === 0 || endUs > (s[i + END] as number)) s[i + END] = endUs',
    becomes: ['if (count === 0 || endUs >= (s[i + END] as number)) s[i + END] = endUs'],
    proof: 'Where both ends are one, it is written as it is.',
  },
  {
    file: 'src/algorithms/fixed-window/fixed-window.ts',
    scope: 'giveBack',
    line: 'if (count === 0 || (ofUs >= 0 && (ofUs < (s[i + START] as number) || ofUs >= (s[i + END] as number)))) return -1',
    becomes: ['if (count === 0 || (ofUs >= 0 && (ofUs < (s[i + START] as number) || ofUs >= (s[i + END] as number)))) return -2'],
    proof: 'Where nothing was given back, only the sign is looked at.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    everywhere: ['i + AT', 'i - AT'],
    proof: 'AT is 0.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'firstFitUs',
    line: 'if (full <= room) {',
    becomes: ['if (true) {'],
    proof:
      'If the full slots alone are above the room, so are they with the oldest, and `room - full` is negative: `fadedTo` is below 0 or, with an oldest count of 0, not a number above 0. Nothing is returned.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: '',
    line: 'const seen: Float64Array = new Float64Array(4)',
    becomes: ['const seen: Float64Array = new Float64Array(5)'],
    proof: 'Only the indices 0 to 3 are ever read or written.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'untilUs',
    line: 'if ((s[i + FULL] as number) + (s[placeOf(own, i, (s[i + SLOT] as number) - own.slots)] as number) <= room) return 0',
    becomes: [
      'if (false) return 0',
      'if ((s[i + FULL] as number) + (s[placeOf(own, i, (s[i + SLOT] as number) - own.slots)] as number) < room) return 0',
    ],
    proof:
      'The counts that are in the window now are among those that were in it when it was written, so there is room beside all of them, and the line before the last returns 0 too.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'untilUs',
    line: 'if (beside >= oldest || (beside >= 0 && beside >= weighed(own, oldest, seen[SEEN_OFFSET] as number))) return 0',
    becomes: ['if (beside > oldest || (beside >= 0 && beside >= weighed(own, oldest, seen[SEEN_OFFSET] as number))) return 0'],
    proof: 'The weight of a count is no more than the count, so the second condition holds where both are equal.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'untilUs',
    line: 'if (beside >= oldest || (beside >= 0 && beside >= weighed(own, oldest, seen[SEEN_OFFSET] as number))) return 0',
    becomes: [
      'if (beside >= oldest || (beside > 0 && beside >= weighed(own, oldest, seen[SEEN_OFFSET] as number))) return 0',
      'if (beside >= oldest || (beside >= 1 && beside >= weighed(own, oldest, seen[SEEN_OFFSET] as number))) return 0',
    ],
    proof:
      'With no room beside the full slots, a count of 0 fits by the first condition, and any other weighs 1 at least, because its slot is still in the window in part.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'giveBack',
    line: 'if (newest > present || oldest < present - own.slots) return -1',
    becomes: ['if (newest > present || oldest < present - own.slots) return -2'],
    proof: 'Where nothing was given back, only the sign is looked at.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'giveBack',
    line: 'if ((ofUs < 0 ? (seen[SEEN_FULL] as number) + (seen[SEEN_OLDEST] as number) : countOf(own, s, i, newest)) === 0) return -1',
    becomes: ['if ((ofUs < 0 ? (seen[SEEN_FULL] as number) + (seen[SEEN_OLDEST] as number) : countOf(own, s, i, newest)) === 0) return -2'],
    proof: 'Where nothing was given back, only the sign is looked at.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'fullFrom',
    line: 'if (slot - written >= own.slots) return 0',
    becomes: ['if (slot - written > own.slots) return 0'],
    proof: 'When just so many slots have passed, the loop subtracts every count that `full` is the sum of.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'weighed',
    line: 'return count === 0 ? 0 : mulAddDivUp(count, own.periodUs - offset, 0, own.periodUs)',
    becomes: ['return (mulAddDivUp(count, own.periodUs - offset, 0, own.periodUs))'],
    proof: 'The product of 0 is 0.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'used',
    line: 'if ((s[i + AT] as number) >= nowUs && (s[placeOf(own, i, (s[i + SLOT] as number) - own.slots)] as number) === 0)',
    becomes: [
      'if (false)',
      'if ((s[i + AT] as number) > nowUs && (s[placeOf(own, i, (s[i + SLOT] as number) - own.slots)] as number) === 0)',
    ],
    proof:
      'At the time of writing no slot has passed, so that `look` finds the same sum, and beside it a count of 0, which weighs nothing: the lines only save that.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'firstFitUs',
    line: 'while (slot < last) {',
    becomes: ['while (slot <= last) {'],
    proof: 'In the slot `last` no count is left to leave: what fits there fits at its start, which is returned behind the loop, too.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'firstFitUs',
    line: 'if (fadedTo > 0) return startUs(own, slot, own.periodUs - fadedTo)',
    becomes: [
      'if (true) return startUs(own, slot, own.periodUs - fadedTo)',
      'if (fadedTo >= 0) return startUs(own, slot, own.periodUs - fadedTo)',
    ],
    proof:
      'If the count has to fade to nothing, that is at the end of the slot, which is the start of the next. There the full slots and the oldest count together are what the full slots were, and the loop returns that time too.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'advance',
    line: 'if (slot === s[i + SLOT]) return',
    becomes: ['if (false) return'],
    proof: 'Where no slot has passed, the sum stays, none is emptied, and the slot is written as it is.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'takeOut',
    line: 'for (let slot = newest; slot >= oldest && left > 0; slot -= 1) {',
    becomes: ['for (let slot = newest; slot >= oldest && left >= 0; slot -= 1) {'],
    proof: 'Of nothing that is left, nothing is taken out of the slots that follow.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    everywhere: ['i + AT', 'i - AT'],
    proof: 'AT is 0.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'giveBack',
    line: 'if (ofUs < 0 ? used(own, s, i, nowUs) === 0 : heldOf(own, s, i, nowUs, ofUs) === 0) return -1',
    becomes: ['if (ofUs < 0 ? used(own, s, i, nowUs) === 0 : heldOf(own, s, i, nowUs, ofUs) === 0) return -2'],
    proof: 'Where nothing was given back, only the sign is looked at.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'untilUs',
    line: 'if (most <= 0) return 0',
    becomes: ['if (false) return 0', 'if (most < 0) return 0'],
    proof:
      'If no more than 0 have to leave, what has left counts no less than that, and the last line returns 0: the line only saves the search.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'resetUs',
    line: 'return ((s[i + HELD] as number) > 0 && goneUs > atUs ? goneUs : atUs) - nowUs',
    becomes: ['return ((s[i + HELD] as number) > 0 && goneUs >= atUs ? goneUs : atUs) - nowUs'],
    proof: 'Where both times are one, it is the same whichever is taken.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'leftBy',
    line: 'let low = 0',
    becomes: ['let low = 1'],
    proof: 'If the loop is entered it sets `low`. If not, `high` is 1 and no further from either, so that 1 is returned.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'leftBy',
    line: 'let high = 1',
    becomes: ['let high = 2', 'let high = 0'],
    proof:
      'The first entry has left, and the newest has not. From 0 the loop goes on to 1. From 2, where there are only two, the middle is the newest, which becomes `high`. From any such start the search ends at the first that has not left.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'leftBy',
    line: 'while (high < held - 1 && timeAt(s, i, placeOf(s, i, high)) <= leftUs) {',
    becomes: [
      'while (high <= held - 1 && timeAt(s, i, placeOf(s, i, high)) <= leftUs) {',
      'while (high < held + 1 && timeAt(s, i, placeOf(s, i, high)) <= leftUs) {',
      'while (high < held - 0 && timeAt(s, i, placeOf(s, i, high)) <= leftUs) {',
    ],
    proof: '`high` is never behind the newest, which has not left: there the second condition ends the loop.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'leftBy',
    line: 'high = Math.min(2 * high + 1, held - 1)',
    becomes: ['high = Math.max(2 * high + 1, held - 1)'],
    proof:
      'From 1 it goes to the newest, and the loop ends: the search by halves does the rest. Of three entries it goes to the place behind the newest, and the first middle is the newest, which has not left.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'leftBy',
    line: 'high = Math.min(2 * high + 1, held - 1)',
    becomes: [
      'high = Math.min(3 * high + 1, held - 1)',
      'high = Math.min(2 * high + 2, held - 1)',
      'high = Math.min(2 * high + 0, held - 1)',
    ],
    proof: 'It grows as well, and does not pass the newest: only how soon the first is found that has not left depends on the steps.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'leftBy',
    line: 'high = Math.min(2 * high + 1, held - 1)',
    becomes: ['high = Math.min(2 * high + 1, held + 1)', 'high = Math.min(2 * high + 1, held - 0)'],
    proof:
      '`low` lies two before the end at most, so that the first middle is not behind the newest, which has not left and becomes `high`.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'leftBy',
    line: 'const middle = Math.floor((low + high) / 2)',
    becomes: ['const middle = Math.ceil((low + high) / 2)'],
    proof: 'As long as they are more than 1 apart it lies between both, too, and the search ends at the same place from any such middle.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryReaching',
    line: 'if (sumAt(s, i, place) >= missing) return entry',
    becomes: ['if (false) return entry', 'if (sumAt(s, i, place) > missing) return entry'],
    proof: 'The sums of a segment do not fall, so that the search by halves ends at this entry too: the line only saves it.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'used',
    line: 'return hasLeft(rule, s, i, nowUs) ? (s[i + TOTAL] as number) - sumOfOldest(s, i, leftBy(rule, s, i, nowUs)) : (s[i + TOTAL] as number)',
    becomes: ['return ((s[i + TOTAL] as number) - sumOfOldest(s, i, leftBy(rule, s, i, nowUs)))'],
    proof: 'Where none has left, `leftBy` is 0 and the sum of no entries is 0.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'dropLeft',
    line: 'if (!hasLeft(rule, s, i, nowUs)) return',
    becomes: ['if (false) return'],
    proof:
      'Where none has left, nothing is subtracted, and the oldest entry is begun with where it stands: all words are written as they are.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'dropLeft',
    line: 'if (left < held) beginAt(s, i, placeOf(s, i, left))',
    becomes: ['if (true) beginAt(s, i, placeOf(s, i, left))', 'if (left <= held) beginAt(s, i, placeOf(s, i, left))'],
    proof:
      'If all entries have left, none is held. Only a charge drops all of them, and it appends an entry, for which `begin` sets these words anew. Until then `first` lies in the ring, and nothing else reads them.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'moveTo',
    line: 'if (own === to) return',
    becomes: ['if (false) return'],
    proof: 'Under one rule nothing is left to drop the second time, and its ring fits.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'moveTo',
    line: 'if ((s[i + ROOM] as number) > roomIn(to, s, i)) fitInto(to, s, i, atUs)',
    becomes: ['if ((s[i + ROOM] as number) >= roomIn(to, s, i)) fitInto(to, s, i, atUs)'],
    proof:
      'A ring that just fits holds no more entries than fit and keeps its room. They move to the front, and entries are found wherever they lie.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'add',
    line: 'const newestUs = (s[i + HELD] as number) > 0 ? (s[i + NEWEST] as number) : -1',
    becomes: ['const newestUs = (s[i + HELD] as number) > 0 ? (s[i + NEWEST] as number) : -2'],
    proof: 'Both are before every time.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'add',
    line: 'if (newestUs > timeUs) {',
    becomes: ['if (newestUs >= timeUs) {'],
    proof:
      'At the time of the newest entry `addBefore` finds that one, which counts something, and adds the cost to it and to the total: the same words are written.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'makeRoom',
    line: 's[i + ROOM] = Math.min(most, Math.max(held < room ? 0 : room, roomFor((s[i + HELD] as number) + 1)))',
    becomes: ['s[i + ROOM] = Math.min(most, Math.max(held < room ? 1 : room, roomFor((s[i + HELD] as number) + 1)))'],
    proof: 'The room for one entry or more is 1 at least.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'straighten',
    line: 'if (first + held > room) {',
    becomes: ['if (true) {', 'if (first + held >= room) {'],
    proof:
      'The three turns move the whole ring round until `first` is at the front, which is right for entries in one piece too: moving them alone is only quicker.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'straighten',
    line: '} else if (first > 0) moveWords(s, i + ENTRIES, i + ENTRIES + first * ENTRY_WORDS, held * ENTRY_WORDS)',
    becomes: [
      '} else if (true) moveWords(s, i + ENTRIES, i + ENTRIES + first * ENTRY_WORDS, held * ENTRY_WORDS)',
      '} else if (first >= 0) moveWords(s, i + ENTRIES, i + ENTRIES + first * ENTRY_WORDS, held * ENTRY_WORDS)',
    ],
    proof: 'Entries that stand at the front already are copied onto themselves.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'straighten',
    line: 'let sum = 0',
    becomes: ['let sum = 1'],
    proof:
      'The first entry that is kept begins a segment and sets it. If none is kept, nothing reads the sum of the newest until an entry is appended, which begins a segment too.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'reverse',
    line: 'while (low < high) {',
    becomes: ['while (low <= high) {'],
    proof: 'The one in the middle is put where it stands.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryFrom',
    line: 'if (s[i + NEWEST] === timeUs) return high',
    becomes: ['if (false) return high'],
    proof:
      'Every entry has a time of its own, so the one before the newest is earlier, and the search ends at the newest: the line only saves a reading.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryFrom',
    line: 'let step = 1',
    becomes: ['let step = 2'],
    proof:
      'Steps of any length lead back to an entry that is earlier or to before the first, and between that and `high` the search by halves finds the same one.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryFrom',
    line: 'step = 2 * step',
    becomes: ['step = 3 * step', 'step = 2 / step'],
    proof:
      'Steps of any length of 1 or more lead back to an entry that is earlier or to before the first, and between that and `high` the search by halves finds the same one.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryFrom',
    line: 'const middle = Math.floor((low + high) / 2)',
    becomes: ['const middle = Math.ceil((low + high) / 2)'],
    proof: 'As long as they are more than 1 apart it lies between both, too, and the search ends at the same place from any such middle.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'giveNewest',
    line: 'if (kept > 0) {',
    becomes: ['if (true) {', 'if (kept >= 0) {'],
    proof: 'If nothing is kept, the total is 0, and `dropEmptyNewest` holds no entry, whatever the sums say.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'dropEmptyNewest',
    line: 's[i + NEWEST] = held === 0 ? 0 : timeAt(s, i, placeOf(s, i, held - 1))',
    becomes: [
      's[i + NEWEST] = (timeAt(s, i, placeOf(s, i, held - 1)))',
      's[i + NEWEST] = held === 0 ? 1 : timeAt(s, i, placeOf(s, i, held - 1))',
    ],
    proof: 'Where no entry is held, nothing asks for the time of the newest.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'dropEmptyNewest',
    line: 's[i + NEWEST_SUM] = held === 0 ? 0 : sumAt(s, i, placeOf(s, i, held - 1))',
    becomes: [
      's[i + NEWEST_SUM] = (sumAt(s, i, placeOf(s, i, held - 1)))',
      's[i + NEWEST_SUM] = held === 0 ? 1 : sumAt(s, i, placeOf(s, i, held - 1))',
    ],
    proof: 'Where no entry is held, the next begins a segment, and nothing asks for the sum of the newest.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'gather',
    line: 'if (permits > 0) put(s, i, 0, atUs, permits)',
    becomes: ['if (true) put(s, i, 0, atUs, permits)', 'if (permits >= 0) put(s, i, 0, atUs, permits)'],
    proof: 'A state that is repaired was charged, so it has a place. If nothing is in use, no entry is held, and nothing reads it.',
  },
  {
    file: 'scripts/lua/prelude.lua',
    scope: 'slice',
    line: 'for k = from, to - 1 do',
    becomes: ['for k = from, to + 1 do', 'for k = from, to - 0 do'],
    proof: 'What is sliced is read up to its `length`, which is to - from: nothing looks at elements behind that.',
  },
  {
    file: 'scripts/lua/prelude.lua',
    scope: 'moveWords',
    line: 'if to < from then',
    becomes: ['if to <= from then'],
    proof: 'Where both places are one, words are copied onto themselves in either order.',
  },
  {
    file: 'src/algorithms/codec.lua',
    scope: 'foreign',
    line: 'error({ what = what }, 0)',
    becomes: ['error({ what = what }, 1)'],
    proof: 'The level says whose place stands before the text of an error. A table has none.',
  },
  {
    file: 'src/algorithms/codec.lua',
    scope: '',
    line: 'local MOST_AT_ONCE = 4000',
    becomes: ['local MOST_AT_ONCE = 4001'],
    proof:
      'How many values one call takes changes no byte and no answer: the pieces stand behind each other. It is far below what fits Lua’s stack, 8,000.',
  },
  {
    file: 'src/algorithms/codec.lua',
    scope: '',
    line: 'local LABEL, WORDS, FORM, SIZE, TAGS, EVEN, ODD, RUN, CELL, OWN = 1, 2, 3, 4, 5, 9, 10, 11, 12, 13',
    becomes: ['local LABEL, WORDS, FORM, SIZE, TAGS, EVEN, ODD, RUN, CELL, OWN = 1, 2, 3, 4, 5, 9, 10, 11, 12, 14'],
    proof: 'Nothing else stands at 14: the list becomes longer by one.',
  },
  {
    file: 'src/algorithms/codec.lua',
    scope: 'newLong',
    line: "local form, rest = shape[FORM] .. formOf(even, odd, min(behind, MOST_AT_ONCE)) .. rep('I0', MOST_TAGGED - LEAD - behind), behind - MOST_AT_ONCE",
    becomes: [
      "local form, rest = shape[FORM] .. formOf(even, odd, min(behind, MOST_AT_ONCE)) .. rep('I0', MOST_TAGGED + LEAD - behind), behind - MOST_AT_ONCE",
      "local form, rest = shape[FORM] .. formOf(even, odd, min(behind, MOST_AT_ONCE)) .. rep('I0', MOST_TAGGED - LEAD + behind), behind - MOST_AT_ONCE",
    ],
    proof:
      'Sluice writes no more than 20 words with tags. Of those the values behind the twentieth are dropped where they are read, however many words without bytes the form is filled up with.',
  },
  {
    file: 'src/stores/redis/general-path.lua',
    scope: 'failAs',
    line: "local isOther = string.find(reply.err, 'WRONGTYPE', 1, true)",
    becomes: [
      "local isOther = string.find(reply.err, 'WRONGTYPE', 0, true)",
      "local isOther = string.find(reply.err, 'WRONGTYPE', 1, false)",
    ],
    proof:
      'string.find begins with the first byte where it is told to begin before it; and as a pattern these letters stand for themselves.',
  },
  {
    file: 'src/stores/redis/general-path.lua',
    scope: 'failAs',
    line: 'error(isOther and { what = reply.err } or { said = reply.err }, 0)',
    becomes: ['error(isOther and { what = reply.err } or { said = reply.err }, 1)'],
    proof: 'The level says whose place stands before the text of an error. A table has none.',
  },
  {
    file: 'src/algorithms/labels.lua',
    scope: 'algorithmOf',
    line: 'if not algorithms[name] then',
    becomes: ['if true then'],
    proof: 'Functions that are made anew do the same as those that were there: to make them once only saves time.',
  },
  {
    file: 'src/algorithms/labels.lua',
    scope: 'ruleOf',
    line: 'for k = 0, isKnown and -1 or figures.length - 1 do',
    becomes: [
      'for k = 0, isKnown and 1 or figures.length - 1 do',
      'for k = 0, isKnown and -2 or figures.length - 1 do',
      'for k = 0, isKnown and -0 or figures.length - 1 do',
    ],
    proof: 'The figures of a rule that the caller brings are those of a limit that was checked when it was made: none is out of range.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'figuresOf',
    line: 'local figures, count, number, unit = { [0] = 0, 0, 0, 0, length = 0 }, 0, 0, 1',
    becomes: [
      'local figures, count, number, unit = { [1] = 0, 0, 0, 0, length = 0 }, 0, 0, 1',
      'local figures, count, number, unit = { [0] = 1, 0, 0, 0, length = 0 }, 0, 0, 1',
      'local figures, count, number, unit = { [0] = 0, 1, 0, 0, length = 0 }, 0, 0, 1',
      'local figures, count, number, unit = { [0] = 0, 0, 1, 0, length = 0 }, 0, 0, 1',
      'local figures, count, number, unit = { [0] = 0, 0, 0, 1, length = 0 }, 0, 0, 1',
      'local figures, count, number, unit = { [0] = 0, 0, 0, 0, length = 1 }, 0, 0, 1',
    ],
    proof: 'The numbers make room. Each figure and the length are written over them, and nothing reads behind the last figure.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'tagOf',
    line: 'return 0, 0',
    becomes: ['return 0, 1'],
    proof: 'A word with this tag takes no bytes: whatever its number is, none is packed.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'tagOf',
    line: 'return MINUS_ONE, 0',
    becomes: ['return MINUS_ONE, 1'],
    proof: 'A word with this tag takes no bytes: whatever its number is, none is packed.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'tagOf',
    line: 'return BACK, 0',
    becomes: ['return BACK, 1'],
    proof: 'A word with this tag takes no bytes: whatever its number is, none is packed.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'tagOf',
    line: 'if back >= 0 and back < MAX_BACK and (back < word or word < 0) then',
    becomes: [
      'if back >= 0 and back < MAX_BACK and (back < word or word <= 0) then',
      'if back >= 0 and back < MAX_BACK and (back < word or word < 1) then',
    ],
    proof: 'Words are whole, and 0 has returned before.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'tagOf',
    line: 'return word > 0 and tag + (word < 256 and 1 or word < 65536 and 2 or 3) or nil, word',
    becomes: ['return word >= 0 and tag + (word < 256 and 1 or word < 65536 and 2 or 3) or nil, word'],
    proof: '0 has returned before, the number as well as what is counted back.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'oneRecordForm',
    line: 'local headSize = byte(raw, 8) or 0',
    becomes: ['local headSize = byte(raw, 8) or 1'],
    proof: 'A label has four bytes at least, so that either is less than it.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'oneRecordForm',
    line: "return false, '', -1, 0, 0, 0, 0",
    becomes: ["return false, '', 1, 0, 0, 0, 0", "return false, '', -2, 0, 0, 0, 0", "return false, '', -0, 0, 0, 0, 0"],
    proof:
      'fast-path.lua unpacks the next record by the form only if it is so long. By an empty form it finds no head, which is not the one that is known, and looks at the record itself, as it does without.',
  },
  {
    file: 'src/algorithms/tags.lua',
    scope: 'oneRecordForm',
    line: "return false, '', -1, 0, 0, 0, 0",
    becomes: [
      "return false, '', -1, 1, 0, 0, 0",
      "return false, '', -1, 0, 1, 0, 0",
      "return false, '', -1, 0, 0, 1, 0",
      "return false, '', -1, 0, 0, 0, 1",
    ],
    proof: 'Where no record is known, fast-path.lua reads no words by the tags, and writes the next record with tags of its own.',
  },
]
