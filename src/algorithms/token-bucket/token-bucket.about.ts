import { type About, capacityOf, limitSchema, rateOf } from '../about.ts'
import { tokenBucket } from './token-bucket.ts'

export const tokenBucketAbout: About = {
  type: 'tokenBucket',
  explanation: 'saves up ten while idle and lets them go at once, then one every 100 ms',
  sample: (capacity, rate) => tokenBucket({ capacity, refill: rate }),
  schema: limitSchema('tokenBucket', 'A steady refill with a bucket to save up in.', {
    capacity: capacityOf('How many tokens an idle bucket holds, and so admits at once: whole, 0 to 1e9. Required.', 20),
    refill: rateOf('The pace at which tokens come back: permits per time. Required.'),
  }),
}
