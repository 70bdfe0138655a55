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
    line: 'return product <= MAX_EXACT ? divide(product, c) : mulDivWide(Math.min(a, b), Math.max(a, b), c)',
    becomes: [
      'return (mulDivWide(Math.min(a, b), Math.max(a, b), c))',
      'return product < MAX_EXACT ? divide(product, c) : mulDivWide(Math.min(a, b), Math.max(a, b), c)',
    ],
    proof:
      'The long way is exact for all operands, small ones too (for a = 0 `bit` falls to 0 and the loop is not entered): the short way gives the same quotient and remainder sooner.',
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
    line: 'if (sum <= MAX_EXACT) return Math.ceil(sum / c)',
    becomes: ['if (false) return Math.ceil(sum / c)', 'if (sum < MAX_EXACT) return Math.ceil(sum / c)'],
    proof: 'The long way below is exact for small sums too: the short way gives the same number sooner.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: '',
    line: 'export const level: Float64Array = new Float64Array(2)',
    becomes: ['export const level: Float64Array = new Float64Array(3)'],
    proof: 'Only the indices 0 and 1 are ever read or written.',
  },
  {
    file: 'src/algorithms/level.ts',
    everywhere: ['i + TAT', 'i - TAT'],
    proof: 'TAT is 0.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'fitsInUs',
    line: 'if (cost === 1) {',
    becomes: ['if (false) {', 'if (cost === 0) {'],
    proof:
      'A cost is at least 1. The other branch computes for a cost of 1 the same mulDiv(1, periodUs, permits) that the rule has ready as its interval.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'chargeIfFits',
    line: 'if (cost !== 1) return chargeManyIfFit(rule, s, i, atUs, cost)',
    becomes: ['if (true) return chargeManyIfFit(rule, s, i, atUs, cost)', 'if (cost !== 0) return chargeManyIfFit(rule, s, i, atUs, cost)'],
    proof:
      'A cost is at least 1, so that all take the long way, of which the rest of the function is the short form: a TAT that one interval moves to no more than the tolerance ahead is below the ceiling and is charged by both; any other is cut down to the ceiling, if it is above, and refused by both, because a level that was cut down is at least the capacity.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'giveBackTo',
    line: 'if (afterUs > 0 || (afterUs === 0 && afterPart > 0)) {',
    becomes: ['if (afterUs > 0 || (afterUs === 0 && afterPart >= 0)) {'],
    proof:
      'If nothing came after the ticket, the block subtracts (0, 0) from the cost, whose part is from 0 to below `permits`: it changes nothing.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'giveBackTo',
    line: 'if (part < 0) {',
    becomes: ['if (part <= 0) {', 'if (part < 1) {'],
    proof: 'Parts are whole. A part of 0 becomes `permits` and one microsecond less, and the next `if` turns that back.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'giveBackTo',
    line: 'if (part >= rule.permits) {',
    becomes: ['if (part > rule.permits) {'],
    proof:
      '(us, permits) is the same time as (us + 1, 0). For us = -1 that is nothing, and both return false. Above it `moveEarlier` treats both alike: it borrows a microsecond for the first, since no part of a state reaches `permits`, and comes to the same TAT and part.',
  },
  {
    file: 'src/algorithms/level.ts',
    scope: 'carryParts',
    line: 'if (carried === rule.periodUs) setLevel(whole + 1, 0)',
    becomes: ['if (false) setLevel(whole + 1, 0)'],
    proof:
      '(whole, periodUs) is the same level as (whole + 1, 0): it is above the ceiling exactly if that is, because the ceiling has a part below `periodUs`, and `putLevel` turns both into the same time.',
  },
  {
    file: 'src/algorithms/bucket.ts',
    everywhere: ['i + TAT', 'i - TAT'],
    proof: 'TAT is 0.',
  },
  {
    file: 'src/algorithms/bucket.ts',
    scope: 'tryTake',
    line: 'if (atUs > nowUs || (s[i + TAT] as number) - atUs >= rule.ceilingUs) return tryTakeRepaired(rule, s, i, nowUs, cost)',
    becomes: [
      'if (true) return tryTakeRepaired(rule, s, i, nowUs, cost)',
      'if (atUs >= nowUs || (s[i + TAT] as number) - atUs >= rule.ceilingUs) return tryTakeRepaired(rule, s, i, nowUs, cost)',
      'if (atUs > nowUs || (s[i + TAT] as number) + atUs >= rule.ceilingUs) return tryTakeRepaired(rule, s, i, nowUs, cost)',
    ],
    proof:
      'They repair in more cases than the code (TAT + at is never below TAT - at). Where only the mutant does, the state is not dated ahead of now and its TAT less than the ceiling ahead of its date: `repair` finds nothing to re-date or to cut, and the rest is the same charge at the same time, now.',
  },
  {
    file: 'src/algorithms/gcra/gcra.ts',
    everywhere: ['i + TAT', 'i - TAT'],
    proof: 'TAT is 0.',
  },
  {
    file: 'src/algorithms/gcra/gcra.ts',
    scope: 'gcra',
    line: 'compile(0)',
    becomes: ['compile(1)'],
    proof:
      'The rule is thrown away: it is compiled to see whether that throws, and what throws, the time to fill, does not depend on `maxAheadUs`.',
  },
  {
    file: 'src/algorithms/token-bucket/token-bucket.ts',
    scope: 'tokenBucket',
    line: 'compile(0)',
    becomes: ['compile(1)'],
    proof:
      'The rule is thrown away: it is compiled to see whether that throws, and what throws, the time to fill, does not depend on `maxAheadUs`.',
  },
  {
    file: 'src/algorithms/token-bucket/token-bucket.ts',
    scope: 'fieldsOf',
    line: "const { tokens = '', part = '', time = '', limit = '' } = typeof encoded === 'string' ? {} : encoded",
    becomes: ["const { tokens = '', part = '', time = '', limit = '' } = (encoded)"],
    proof: 'A string has no properties of these names, so that it is read as four empty texts too. The question is for the compiler.',
  },
  {
    file: 'src/algorithms/token-bucket/token-bucket.ts',
    scope: 'decodeTokenBucket',
    line: 'if (part > 0) writeBucket({ permits, periodUs }, s, i, capacity - tokens - 1, periodUs - part, time)',
    becomes: [
      'if (true) writeBucket({ permits, periodUs }, s, i, capacity - tokens - 1, periodUs - part, time)',
      'if (part >= 0) writeBucket({ permits, periodUs }, s, i, capacity - tokens - 1, periodUs - part, time)',
    ],
    proof:
      'They differ for a part of 0: one permit less and a part of `periodUs` is the same level, and `writeBucket` turns both into the same time, for a full bucket too.',
  },
  {
    file: 'src/algorithms/leaky-bucket/leaky-bucket.ts',
    scope: 'leakyBucket',
    line: 'compile(0)',
    becomes: ['compile(1)'],
    proof:
      'The rule is thrown away: it is compiled to see whether that throws, and what throws, the time to fill, does not depend on `maxAheadUs`.',
  },
  {
    file: 'src/algorithms/leaky-bucket/leaky-bucket.ts',
    scope: 'decodeLeakyBucket',
    line: "const { water = '', part = '', time = '', limit = '' } = typeof encoded === 'string' ? {} : encoded",
    becomes: ["const { water = '', part = '', time = '', limit = '' } = (encoded)"],
    proof: 'A string has no properties of these names, so that it is read as four empty texts too. The question is for the compiler.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'emptyVerdict',
    line: "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, ticket: undefined }",
    becomes: [
      "return { outcome: 'allowed', remaining: 1, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 1, resetUs: 0, delayUs: 0, atUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 1, delayUs: 0, atUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 1, atUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 1, ticket: undefined }",
    ],
    proof:
      'Every number of a verdict is written before anybody reads it, by `answer` (retryUs, delayUs) and `describe` (atUs, remaining, resetUs).',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'takeOne',
    line: 'const delayUs = algorithm.delayUs === undefined ? 0 : settledDelayUs(rule, s, i, nowUs)',
    becomes: ['const delayUs = (settledDelayUs(rule, s, i, nowUs))'],
    proof:
      'Without `delayUs` it settles the state and is 0 too. `tryTake` settles anyway, and settling twice at one time is settling once.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'settledDelayUs',
    line: 'return rule.algorithm.delayUs?.(rule, s, i, nowUs) ?? 0',
    becomes: ['return rule.algorithm.delayUs?.(rule, s, i, nowUs) ?? 1'],
    proof: 'It is only called for an algorithm that has `delayUs`, which returns a number. The question is for the compiler.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'ask',
    line: 'const allowedAheadUs = algorithm.bookable && aheadUs >= 0 ? aheadUs : 0',
    becomes: [
      'const allowedAheadUs = algorithm.bookable && aheadUs > 0 ? aheadUs : 0',
      'const allowedAheadUs = algorithm.bookable && aheadUs >= 1 ? aheadUs : 0',
    ],
    proof: '`aheadUs` is whole, and for 0 either branch is 0.',
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
    scope: 'tryTake',
    line: 'if (count === 0 || (s[i + AT] as number) > nowUs || nowUs - (s[i + START] as number) >= rule.windowUs) {',
    becomes: ['if (true) {', 'if (count === 0 || (s[i + AT] as number) >= nowUs || nowUs - (s[i + START] as number) >= rule.windowUs) {'],
    proof:
      '`tryTakeAnew` comes to the same where the short form is allowed: a state that is not dated ahead of now is not repaired, its window has not ended, and the count is written back with the same start and the date now.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    everywhere: ['i + AT', 'i - AT'],
    proof: 'AT is 0.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: '',
    line: 'const seen = { slot: 0, offset: 0, full: 0, oldest: 0 }',
    becomes: [
      'const seen = { slot: 1, offset: 0, full: 0, oldest: 0 }',
      'const seen = { slot: 0, offset: 1, full: 0, oldest: 0 }',
      'const seen = { slot: 0, offset: 0, full: 1, oldest: 0 }',
      'const seen = { slot: 0, offset: 0, full: 0, oldest: 1 }',
    ],
    proof: 'Whoever reads `seen` has called `look` before, and that writes all four.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'give',
    line: 'const oldest = ofUs < 0 ? seen.slot - rule.slots : newest',
    becomes: ['const oldest = ofUs <= 0 ? seen.slot - rule.slots : newest', 'const oldest = ofUs < 1 ? seen.slot - rule.slots : newest'],
    proof:
      'They differ for ofUs = 0, where newest is slot 0. If slot 0 has left the window, the code returns false, and the mutant finds nothing between a later slot and slot 0 and does too. If it has not, the mutant also looks at slots below 0, which hold nothing.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'fullFrom',
    line: 'if (slot - written >= rule.slots) return 0',
    becomes: ['if (slot - written > rule.slots) return 0'],
    proof: 'When exactly `slots` slots have passed, the loop subtracts every count that `full` is the sum of, which gives 0 too.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'weighed',
    line: 'return count === 0 ? 0 : mulAddDivUp(count, rule.periodUs - offset, 0, rule.periodUs)',
    becomes: ['return (mulAddDivUp(count, rule.periodUs - offset, 0, rule.periodUs))'],
    proof: 'Any part of a count of 0 is 0, without a remainder to round up.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'seenToFit',
    line: 'return room >= seen.oldest || (room >= 0 && room >= weighed(rule, seen.oldest, seen.offset))',
    becomes: [
      'return room > seen.oldest || (room >= 0 && room >= weighed(rule, seen.oldest, seen.offset))',
      'return room >= seen.oldest || (room > 0 && room >= weighed(rule, seen.oldest, seen.offset))',
      'return room >= seen.oldest || (room >= 1 && room >= weighed(rule, seen.oldest, seen.offset))',
    ],
    proof:
      'A count weighs at most itself, so that room for all of it is found by the second comparison too; and one above 0 weighs at least 1, because its slot has not left the window altogether, so that no room at all is refused by it too.',
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
    scope: 'firstFitUs',
    line: 'if (fadedTo > 0) return startUs(rule, slot, rule.periodUs - fadedTo)',
    becomes: [
      'if (true) return startUs(rule, slot, rule.periodUs - fadedTo)',
      'if (fadedTo >= 0) return startUs(rule, slot, rule.periodUs - fadedTo)',
    ],
    proof:
      'Here `full` is at most the room, so that `fadedTo` is at least 0. At 0 the mutants return the end of this slot. The code goes on to the next, whose oldest count was taken out of `full`, so that both together fit, and returns its start, which is the same time.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'advance',
    line: 'const passed = Math.min(seen.slot - written, rule.slots + 1)',
    becomes: ['const passed = Math.min(seen.slot - written, rule.slots + 2)'],
    proof: 'There are slots + 1 places: emptying one slot more comes round to a place that was emptied already.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'giveBack',
    line: 'for (let slot = newest; slot >= oldest && left > 0; slot--) {',
    becomes: ['for (let slot = newest; slot >= oldest && left >= 0; slot--) {'],
    proof: 'With nothing left to give, the further slots are given 0.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'tryTake',
    line: 'const offset = time - (s[i + SLOT] as number) * rule.periodUs',
    becomes: ['const offset = time + (s[i + SLOT] as number) * rule.periodUs'],
    proof:
      'In slot 0 it is the same. In any other the sum is at least a slot, so that the long way is taken. `tryTakeAnew` comes to the same where the short form is allowed: a state that is not dated ahead of now is not repaired, and in the slot that was counted in `look` sees the sum and the counts that stand there, at the same offset, and `advance` moves nothing.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'tryTake',
    line: 'if (offset >= rule.periodUs || time > MAX_EXACT || (s[i + AT] as number) > nowUs) return tryTakeAnew(rule, s, i, nowUs, cost)',
    becomes: [
      'if (true) return tryTakeAnew(rule, s, i, nowUs, cost)',
      'if (offset >= rule.periodUs || time >= MAX_EXACT || (s[i + AT] as number) > nowUs) return tryTakeAnew(rule, s, i, nowUs, cost)',
      'if (offset >= rule.periodUs || time > MAX_EXACT || (s[i + AT] as number) >= nowUs) return tryTakeAnew(rule, s, i, nowUs, cost)',
    ],
    proof:
      '`tryTakeAnew` comes to the same where the short form is allowed: a state that is not dated ahead of now is not repaired, and in the slot that was counted in `look` sees the sum and the counts that stand there, at the same offset, and `advance` moves nothing.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'tryTake',
    line: 'if (room < oldest && (room < 0 || room < weighed(rule, oldest, offset))) return false',
    becomes: [
      'if (room <= oldest && (room < 0 || room < weighed(rule, oldest, offset))) return false',
      'if (room < oldest && (room <= 0 || room < weighed(rule, oldest, offset))) return false',
      'if (room < oldest && (room < 1 || room < weighed(rule, oldest, offset))) return false',
    ],
    proof:
      'As in `seenToFit`: a count weighs at most itself, so that room for all of it passes the second comparison too; and one above 0 weighs at least 1, so that no room at all fails it too.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'decodeSlidingWindow',
    line: "const { time = '', limit = '', ...slots } = typeof encoded === 'string' ? {} : encoded",
    becomes: ["const { time = '', limit = '', ...slots } = (encoded)"],
    proof:
      'A string has no properties of these names, so that time and limit are empty texts too, and it is refused. The question is for the compiler.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'decodeSlidingWindow',
    line: 'const rule = slidingWindowAlgorithm.ruleOf(figuresNamed(limit), 0)',
    becomes: ['const rule = slidingWindowAlgorithm.ruleOf(figuresNamed(limit), 1)'],
    proof: 'No function of a sliding window reads `maxAheadUs`, and this rule does not leave the function.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'firstFitUs',
    line: 'full -= leaving + 1 <= written ? (s[placeOf(s, i, leaving + 1)] as number) : 0',
    becomes: [
      'full -= (s[placeOf(s, i, leaving + 1)] as number)',
      'full -= leaving - 1 <= written ? (s[placeOf(s, i, leaving + 1)] as number) : 0',
      'full -= leaving + 0 <= written ? (s[placeOf(s, i, leaving + 1)] as number) : 0',
      'full -= leaving + 1 <= written ? (s[placeOf(s, i, leaving + 1)] as number) : 1',
    ],
    proof:
      'They differ when the last slot that was counted in is leaving. Then `full` is 0, whatever is taken off it (a sum that is not negative) leaves it at most 0, and the next slot has no oldest count: it fits there, at the start of that slot, with any such `full`.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'advance',
    line: 'if (passed > 0) {',
    becomes: ['if (true) {', 'if (passed >= 0) {'],
    proof:
      '`look` never sees a slot before the one that was counted in, so that they differ only when none has passed: the counts are copied onto themselves, and none is emptied.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.ts',
    scope: 'heldBetween',
    line: 'for (let slot = oldest; slot <= newest && slot <= (s[i + SLOT] as number); slot++) held += s[placeOf(s, i, slot)] as number',
    becomes: [
      'for (let slot = oldest; slot <= newest && slot <= (s[i + SLOT] as number); slot++) held -= s[placeOf(s, i, slot)] as number',
    ],
    proof: 'The sum is only compared with 0, and no count is negative: it is 0 exactly if its negative is.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    everywhere: ['i + AT', 'i - AT'],
    proof: 'AT is 0.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'append',
    line: 'if (ENTRIES + ((s[i + END] as number) + 1) * ENTRY_WORDS > words) moveToFront(s, i)',
    becomes: [
      'if (true) moveToFront(s, i)',
      'if (ENTRIES + ((s[i + END] as number) + 2) * ENTRY_WORDS > words) moveToFront(s, i)',
      'if (ENTRIES + ((s[i + END] as number) + 1) * ENTRY_WORDS >= words) moveToFront(s, i)',
    ],
    proof:
      'Entries are found by `first` and `end` alone, wherever they lie: moving them to the front before there is need only takes time.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryAt',
    line: 'const middle = Math.floor((low + high) / 2)',
    becomes: ['const middle = Math.ceil((low + high) / 2)'],
    proof: 'It lies from `low` to `high` too, and a binary search finds what is there, or that it is not, from any such middle.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryAt',
    line: 'if (timeOf(s, i, middle) < timeUs) low = middle + 1',
    becomes: ['if (timeOf(s, i, middle) <= timeUs) low = middle + 1'],
    proof: 'Equal times have returned in the line before.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'entryAt',
    line: 'return -1',
    becomes: ['return -2'],
    proof: 'Of what was not found only the sign is looked at.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'tryTake',
    line: 'if ((s[i + AT] as number) > nowUs) repair(rule, s, i, nowUs)',
    becomes: ['if (true) repair(rule, s, i, nowUs)', 'if ((s[i + AT] as number) >= nowUs) repair(rule, s, i, nowUs)'],
    proof: 'A state that is not dated ahead of now is not more than a window ahead: `repair` returns without writing.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.ts',
    scope: 'decodeSlidingLog',
    line: "const members = typeof encoded === 'string' ? [] : Object.keys(encoded)",
    becomes: ['const members = (Object.keys(encoded))'],
    proof:
      'The keys of a string are the numbers of its characters. None of them is the member that begins with `at`, so that it is refused too.',
  },
  {
    file: 'src/algorithms/level.lua',
    scope: 'giveBackTo',
    line: 'if afterUs > 0 or (afterUs == 0 and afterPart > 0) then',
    becomes: ['if afterUs > 0 or (afterUs == 0 and afterPart >= 0) then'],
    proof:
      'If nothing came after the ticket, the block subtracts (0, 0) from the cost, whose part is from 0 to below `permits`: it changes nothing.',
  },
  {
    file: 'src/algorithms/level.lua',
    scope: 'giveBackTo',
    line: 'if part < 0 then',
    becomes: ['if part <= 0 then', 'if part < 1 then'],
    proof: 'Parts are whole. A part of 0 becomes `permits` and one microsecond less, and the next `if` turns that back.',
  },
  {
    file: 'src/algorithms/level.lua',
    scope: 'giveBackTo',
    line: 'if part >= rule.permits then',
    becomes: ['if part > rule.permits then'],
    proof:
      '(us, permits) is the same time as (us + 1, 0). For us = -1 that is nothing, and both return false. Above it `moveEarlier` treats both alike: it borrows a microsecond for the first, since no part of a state reaches `permits`, and comes to the same TAT and part.',
  },
  {
    file: 'src/algorithms/level.lua',
    scope: 'carryParts',
    line: 'if carried == rule.periodUs then',
    becomes: ['if false then'],
    proof:
      '(whole, periodUs) is the same level as (whole + 1, 0): it is above the ceiling exactly if that is, because the ceiling has a part below `periodUs`, and `putLevel` turns both into the same time.',
  },
  {
    file: 'src/algorithms/bucket.lua',
    scope: 'written',
    line: 'local s = { 0, 0, atUs }',
    becomes: ['local s = { 1, 0, atUs }', 'local s = { 0, 1, atUs }'],
    proof: 'The next line writes both.',
  },
  {
    file: 'src/algorithms/arithmetic.lua',
    scope: 'mulDiv',
    line: 'if product <= MAX_EXACT then',
    becomes: ['if false then', 'if product < MAX_EXACT then'],
    proof: 'The long way is exact for all operands, small ones too: the short way gives the same quotient and remainder sooner.',
  },
  {
    file: 'src/algorithms/arithmetic.lua',
    scope: 'mulAddDivUp',
    line: 'if sum <= MAX_EXACT then',
    becomes: ['if false then', 'if sum < MAX_EXACT then'],
    proof: 'The long way below is exact for small sums too: the short way gives the same number sooner.',
  },
  {
    file: 'src/algorithms/token-bucket/token-bucket.lua',
    scope: 'decode',
    line: 'if part > 0 then',
    becomes: ['if true then', 'if part >= 0 then'],
    proof:
      'They differ for a part of 0: one permit less and a part of `periodUs` is the same level, and `written` turns both into the same time.',
  },
  {
    file: 'src/algorithms/decide.lua',
    scope: 'decide',
    line: 'local granted = true',
    becomes: ['local granted = false'],
    proof: 'It is read only for `take`, and for that it is written before.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: '',
    line: 'local AT, SLOT, FULL, COUNTS = 1, 2, 3, 4',
    becomes: ['local AT, SLOT, FULL, COUNTS = 0, 2, 3, 4', 'local AT, SLOT, FULL, COUNTS = 1, 2, 3, 5'],
    proof:
      'The state is a table that only this file looks into, always by these names: what matters is that they are four places, and that the counts have room behind theirs.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'fullFrom',
    line: 'if slot - written >= rule.slots then',
    becomes: ['if slot - written > rule.slots then'],
    proof: 'When exactly `slots` slots have passed, the loop subtracts every count that `full` is the sum of, which gives 0 too.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'weighed',
    line: 'if count == 0 then',
    becomes: ['if false then'],
    proof: 'Any part of a count of 0 is 0, without a remainder to round up.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'firstFitUs',
    line: 'if full <= room then',
    becomes: ['if true then'],
    proof:
      'If the full slots alone are above the room, so are they with the oldest, and `room - full` is negative: `fadedTo` is below 0, with an oldest count of 0 as far below as can be. Nothing is returned.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'firstFitUs',
    line: 'if fadedTo > 0 then',
    becomes: ['if true then', 'if fadedTo >= 0 then'],
    proof:
      'Here `full` is at most the room, so that `fadedTo` is at least 0. At 0 the mutants return the end of this slot. The code goes on to the next, whose oldest count was taken out of `full`, so that both together fit, and returns its start, which is the same time.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'firstFitUs',
    line: 'if leaving + 1 <= written then',
    becomes: ['if true then', 'if leaving - 1 <= written then', 'if leaving + 0 <= written then'],
    proof:
      'They differ when the last slot that was counted in is leaving. Then `full` is 0, the place that is read holds the sum, which is not negative, and the next slot has no oldest count: it fits there, at the start of that slot, with any `full` of at most 0.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'advance',
    line: 'local passed = math.min(slot - s[SLOT], rule.slots + 1)',
    becomes: ['local passed = math.min(slot - s[SLOT], rule.slots + 2)'],
    proof:
      'There are slots + 1 counts: where more slots have passed, nothing is copied, and the place that is emptied behind the last count is never read.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'heldBetween',
    line: 'held = held + s[placeOf(s, slot)]',
    becomes: ['held = held - s[placeOf(s, slot)]'],
    proof: 'The sum is only compared with 0, and no count is negative: it is 0 exactly if its negative is.',
  },
  {
    file: 'src/algorithms/sliding-window/sliding-window.lua',
    scope: 'decode',
    line: 'local rule = slidingWindow.ruleNamed(limit, 0)',
    becomes: ['local rule = slidingWindow.ruleNamed(limit, 1)'],
    proof: 'No function of a sliding window reads `maxAheadUs`, and this rule does not leave the function.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.lua',
    scope: 'dropDead',
    line: 'for entry = 1, size do',
    becomes: ['for entry = 0, size do'],
    proof: 'Entries are counted and read from 1 on: what lies at 0 is seen by nobody.',
  },
  {
    file: 'src/algorithms/sliding-log/sliding-log.lua',
    scope: 'gather',
    line: 'for entry = #s, 1, -1 do',
    becomes: ['for entry = #s, 0, -1 do'],
    proof: 'Entries are counted and read from 1 on: there is nothing at 0 to remove.',
  },
  {
    file: 'src/algorithms/level.lua',
    scope: 'timeOfCost',
    line: 'if rule.cost ~= cost then',
    becomes: ['if true then'],
    proof: 'It only saves working out again what the last call worked out, from the same numbers.',
  },
  {
    file: 'src/algorithms/gcra/gcra.lua',
    scope: 'packedNumbers',
    line: 'if digits % 1000000 == 0 then',
    becomes: ['if false then'],
    proof: 'The loop behind it takes the same six zeros off one by one.',
  },
  {
    file: 'src/algorithms/gcra/gcra.lua',
    scope: 'shortForm',
    line: 'if cost > capacity or tolerance > MAX_EXACT then',
    becomes: ['if cost > capacity or tolerance >= MAX_EXACT then'],
    proof: 'MAX_EXACT itself is exact, so the short form and the long way, which decides where there is none, say and write the same.',
  },
  {
    file: 'src/algorithms/gcra/gcra.lua',
    scope: 'decode',
    line: "local capacity, permits, period, part = unpack(numbersIn(#bytes > MAX_BYTES and '' or bytes), 1, 4)",
    becomes: ["local capacity, permits, period, part = unpack(numbersIn(#bytes > MAX_BYTES and '' or bytes), 1, 5)"],
    proof: 'A fifth value has no name to go to, and is dropped.',
  },
  {
    file: 'src/algorithms/gcra/gcra.lua',
    scope: 'decode',
    line: 'if not period or tatUs > MAX_TAT_US or capacity < 1 or permits < 1 or period < 16 or (part or 0) >= permits then',
    becomes: ['if not period or tatUs > MAX_TAT_US or capacity < 1 or permits < 0 or period < 16 or (part or 0) >= permits then'],
    proof: 'Numbers that are read are at least 0. If `permits` is 0, no part is below it, and the last clause refuses.',
  },
  {
    file: 'src/algorithms/gcra/gcra.lua',
    scope: 'decode',
    line: 'if gcra.encode(levelRuleNamed(numbers, 0), s) ~= bytes then',
    becomes: ['if gcra.encode(levelRuleNamed(numbers, 1), s) ~= bytes then'],
    proof: 'How far ahead may be booked is not among what is written.',
  },
  {
    file: 'src/algorithms/fixed-window/fixed-window.lua',
    scope: 'shortForm',
    line: 'if startUs == newUs then',
    becomes: ['if false then'],
    proof: 'Nothing is remembered then, and every text is put together anew, which only takes time.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: 'addMembers',
    line: 'for k = first, math.min(first + 3999, #members), 2 do',
    becomes: ['for k = first, math.min(first + 4000, #members), 2 do'],
    proof:
      'The first member of the next portion is added with this one too, and adding a member twice with the same score is adding it once.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: 'store',
    line: 'if algorithm.sparse then',
    becomes: ['if true then'],
    proof: 'The fields of a state that is not sparse are always the same, and all of them are written next.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: 'readRaw',
    line: "return not string.find(raw.err, 'WRONGTYPE', 1, true) and error(raw, 0)",
    becomes: [
      "return not string.find(raw.err, 'WRONGTYPE', 0, true) and error(raw, 0)",
      "return not string.find(raw.err, 'WRONGTYPE', 1, false) and error(raw, 0)",
      "return not string.find(raw.err, 'WRONGTYPE', 1, true) and error(raw, 1)",
    ],
    proof:
      'Lua begins at the first character for 0 as for 1; the text has no character that means something in a pattern; and a level only changes errors that are text, which this is not.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: 'refuse',
    line: "error({ err = 'SLUICE the key ' .. key .. ' does not hold a ' .. cell.type .. ' state' }, 0)",
    becomes: ["error({ err = 'SLUICE the key ' .. key .. ' does not hold a ' .. cell.type .. ' state' }, 1)"],
    proof: 'A level only changes errors that are text, and this one is a table.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: 'sayVerdict',
    line: "if verdict.outcome == 'allowed' and verdict.delayUs == 0 and not isReservation then",
    becomes: ['if false then'],
    proof: 'The long answer says the same, with the zeros that the short one leaves out: the client reads one verdict from either.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: 'cellAt',
    line: "if op == 'give' and ARGV[at + 4] ~= '' then",
    becomes: ["if op == 'give' and ARGV[at + 5] ~= '' then"],
    proof: 'The numbers of a ticket and its words are both there or both empty.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: 'forget',
    line: 'say(0)',
    becomes: ['say(1)'],
    proof: 'Of a key that was forgotten the client only reads that something was said.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: '',
    line: 'if run.partsAt ~= partsAt then',
    becomes: ['if true then'],
    proof: 'It only saves reading again what the decision before had in common with this one.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: '',
    line: 'if isDone then',
    becomes: ['if false then'],
    proof: 'What ends well returns nothing, so `failure` is nil, and nil is returned.',
  },
  {
    file: 'src/stores/redis/runner.lua',
    scope: '',
    line: 'while first <= #ARGV do',
    becomes: ['while first < #ARGV do'],
    proof: 'A run takes at least seven places, so it never begins at the last one.',
  },
  {
    file: 'src/algorithms/decide.lua',
    scope: 'askOne',
    line: "return answer(verdict, 'impossible', 0, 0)",
    becomes: ["return answer(verdict, 'impossible', 1, 0)"],
    proof: 'The client says Infinity for what is impossible, whatever stands there.',
  },
  {
    file: 'src/algorithms/decide.lua',
    scope: 'askOne',
    line: 'local allowedAheadUs = algorithm.bookable and aheadUs >= 0 and aheadUs or 0',
    becomes: [
      'local allowedAheadUs = algorithm.bookable and aheadUs > 0 and aheadUs or 0',
      'local allowedAheadUs = algorithm.bookable and aheadUs >= 1 and aheadUs or 0',
    ],
    proof: 'Times are whole, and for 0 either way gives 0.',
  },
  {
    file: 'src/stores/redis/long-way.lua',
    scope: '',
    line: "return type(failure) == 'table' and failure.err or failure",
    becomes: ["return type(failure) ~= 'table' and failure.err or failure", "return type(failure) == 'table' or failure.err or failure"],
    proof:
      'From Redis 7 on `pcall` gives the text of such an error and no table, and a text has no `err`: the text is returned. The line is for Redis 6.2, which is not among the servers of the tests.',
  },
  {
    file: 'src/stores/redis/runner.lua',
    scope: '',
    line: 'made = made + 1',
    becomes: ['made = made + 2', 'made = made - 1'],
    proof: 'It is only asked whether it is 0, and it never comes back to that.',
  },
  {
    file: 'src/stores/redis/runner.lua',
    scope: '',
    line: "local partSize = string.sub(verb, 1, 4) == 'give' and GIVEN_PART_SIZE or PART_SIZE",
    becomes: ["local partSize = string.sub(verb, 0, 4) == 'give' and GIVEN_PART_SIZE or PART_SIZE"],
    proof: 'Lua begins at the first character for 0 as for 1.',
  },
  {
    file: 'src/stores/redis/runner.lua',
    scope: '',
    line: 'if ttlMs < leastTtlMs then',
    becomes: ['if ttlMs <= leastTtlMs then'],
    proof: 'If they are equal, it becomes what it is.',
  },
  {
    file: 'src/stores/redis/runner.lua',
    scope: '',
    line: 'if ttlMs ~= lastTtlMs then',
    becomes: ['if true then'],
    proof: 'It only saves making a text again that is the same.',
  },
  {
    file: 'src/stores/redis/runner.lua',
    scope: '',
    line: 'for place = size + 1, size + 2 * parts do',
    becomes: ['for place = size + 1, size + 3 * parts do'],
    proof: 'Behind what the parts said nothing stands.',
  },
]
