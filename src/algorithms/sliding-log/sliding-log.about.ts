import { type About, limitSchema, windowOf } from '../about.ts'
import { slidingLog } from './sliding-log.ts'

export const slidingLogAbout: About = {
  type: 'slidingLog',
  explanation: 'never more than ten in any second, wherever one looks; places come back exactly a second after they were taken',
  sample: (capacity, { per }) => slidingLog({ limit: capacity, window: per }),
  schema: limitSchema('slidingLog', 'Never more than the limit in any window: exact, at the price of remembering every admission.', {
    limit: {
      description: 'How many any window admits at most: whole permits, 0 to 100,000. Each admission held takes 16 bytes. Required.',
      examples: [100],
      type: 'integer',
      minimum: 0,
      maximum: 100_000,
    },
    window: windowOf('How long the window is, with a unit; 1 microsecond to 366 days. Required.'),
  }),
}
