import * as sluice from 'sluice'
import * as shared from 'sluice/shared'
import { storyOnBothStores } from './story.mjs'

console.log(storyOnBothStores(sluice, shared).join('\n'))
