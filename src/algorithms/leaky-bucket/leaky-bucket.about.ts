import { type About, capacityOf, limitSchema, rateOf } from '../about.ts'
import { leakyBucket } from './leaky-bucket.ts'

export const leakyBucketAbout: About = {
  type: 'leakyBucket',
  explanation: 'takes in ten at once, but lets them act one every 100 ms: the burst is spread out',
  sample: (capacity, rate) => leakyBucket({ capacity, leak: rate }),
  schema: limitSchema('leakyBucket', 'A queue that drains at a steady pace: callers that wait out delayMs leave it evenly spaced.', {
    capacity: capacityOf('How much water the bucket holds: whole permits, 0 to 1e9. Required.', 20),
    leak: rateOf('The pace at which it leaks: permits per time. Required.'),
  }),
}
