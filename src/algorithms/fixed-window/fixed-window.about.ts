import { type About, capacityOf, limitSchema, windowOf } from '../about.ts'
import { fixedWindow } from './fixed-window.ts'

export const fixedWindowAbout: About = {
  type: 'fixedWindow',
  explanation: 'ten in each second of the clock: twenty may pass around the boundary, and a busy second is closed after its first half',
  sample: (capacity, { per }) => fixedWindow({ limit: capacity, window: per }),
  schema: limitSchema(
    'fixedWindow',
    'So many per calendar window: the cheapest count, and the one people can check by hand.',
    {
      limit: capacityOf('How many one window admits: whole permits, 0 to 1e9. Required.', 5000),
      window: windowOf('How long a window is, with a unit; 1 microsecond to 366 days. Required.'),
    },
    {
      anchor: {
        description:
          "Where windows begin. 'epoch': at whole multiples since 1970, the same for all keys. 'first': with the first call of a key. " +
          "A number: milliseconds after the epoch's windows, whole to the microsecond; -28800000 with a window of '1d' is midnight in UTC+8.",
        default: 'epoch',
        examples: ['epoch', 'first', -28_800_000],
        anyOf: [
          { enum: ['epoch', 'first'] },
          { type: 'number', minimum: Number.MIN_SAFE_INTEGER / 1000, maximum: Number.MAX_SAFE_INTEGER / 1000 },
        ],
      },
    },
  ),
}
