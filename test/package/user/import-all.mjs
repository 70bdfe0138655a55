/** Imports each of its arguments and prints what it exports. */
const exported = {}
for (const specifier of process.argv.slice(2)) exported[specifier] = Object.keys(await import(specifier)).sort()
console.log(JSON.stringify(exported))
