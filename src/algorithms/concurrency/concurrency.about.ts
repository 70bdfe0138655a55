import { type About, limitSchema, permitsOf, windowOf } from '../about.ts'
import { concurrency } from './concurrency.ts'

export const concurrencyAbout: About = {
  type: 'concurrency',
  explanation: 'ten at once; nothing is released here, so each place comes back when its lease of a second has run out',
  sample: (capacity, { per }) => concurrency({ max: capacity, lease: per }),
  schema: limitSchema(
    'concurrency',
    'No more than max at once: a place is taken until it is released.',
    { max: permitsOf('How many permits may be held at once: whole permits, 1 to 1,000,000,000. Required.', 20) },
    {
      lease: windowOf(
        'After how long a permit that is not renewed is free again, with a unit; 100 ms to 366 days. Required on every store that others share. Default: never.',
      ),
    },
  ),
}
