import { type About, capacityOf, limitSchema, rateOf } from '../about.ts'
import { gcra } from './gcra.ts'

export const gcraAbout: About = {
  type: 'gcra',
  explanation: 'decides like the token bucket, and keeps a single number for it',
  sample: (capacity, rate) => gcra({ rate, burst: capacity }),
  schema: limitSchema('gcra', 'A steady pace with a burst, in one number per key: the default choice.', {
    rate: rateOf('The steady pace: permits per time. Required.'),
    burst: capacityOf('What an idle key admits at once: whole permits, 0 to 1e9. Required.', 20),
  }),
}
