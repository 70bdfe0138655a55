import { type About, capacityOf, limitSchema, windowOf } from '../about.ts'
import { slidingWindow } from './sliding-window.ts'

export const slidingWindowAbout: About = {
  type: 'slidingWindow',
  explanation: 'ten in a second that slides in tenths: no burst at the boundary, places come back bit by bit',
  sample: (capacity, { per }) => slidingWindow({ limit: capacity, window: per }),
  schema: limitSchema(
    'slidingWindow',
    'A window that slides in small steps: no burst at the boundary, at a fixed cost per key.',
    {
      limit: capacityOf('How many are admitted in a window: whole permits, 0 to 1e9. Required.', 100),
      window: windowOf('How long the window is, with a unit; 1 microsecond to 366 days. Required.'),
    },
    {
      slots: {
        description:
          'Into how many sub-windows it is cut, each a whole number of microseconds: 1 to 100. More are smoother and take 8 bytes per key each.',
        default: 10,
        examples: [10, 50],
        type: 'integer',
        minimum: 1,
        maximum: 100,
      },
    },
  ),
}
