const sluice = require('sluice')
const shared = require('sluice/shared')
const { storyOnBothStores } = require('./story.mjs')

console.log(storyOnBothStores(sluice, shared).join('\n'))
