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
    everywhere: ['i + TAT', 'i - TAT'],
    proof: 'TAT is 0.',
  },
  {
    file: 'src/algorithms/gcra/gcra.ts',
    everywhere: ['i + TAT', 'i - TAT'],
    proof: 'TAT is 0.',
  },
  {
    file: 'src/algorithms/decide.ts',
    scope: 'emptyVerdict',
    line: "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined }",
    becomes: [
      "return { outcome: 'allowed', remaining: 1, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 1, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 1, delayUs: 0, atUs: 0, enteredUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 1, atUs: 0, enteredUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 1, enteredUs: 0, ticket: undefined }",
      "return { outcome: 'allowed', remaining: 0, retryUs: 0, resetUs: 0, delayUs: 0, atUs: 0, enteredUs: 1, ticket: undefined }",
    ],
    proof:
      'Every number of a verdict is written before anybody reads it, by `agree` (retryUs, delayUs) and `describe` (all others). Without `isTold` none is read.',
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
    scope: 'advance',
    line: 'if (passed > 0) {',
    becomes: ['if (true) {', 'if (passed >= 0) {'],
    proof:
      '`look` never sees a slot before the one that was counted in, so that they differ only when none has passed: the counts are copied onto themselves, and none is emptied.',
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
]
