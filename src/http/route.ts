/**
 * A route as it stands in a key. Its methods are those that it was made for, not that of the
 * request: a route for all methods is one route. Routes for HEAD, which frameworks make beside
 * those for GET, are the same route.
 */
export function routeText(methods: unknown, path: string): string {
  const all = (Array.isArray(methods) ? methods : [methods]).map((method) => String(method).toUpperCase())
  const named = [...new Set(all.map((method) => (method === 'HEAD' ? 'GET' : method)))].sort()
  return `${named.join(',')} ${path}`
}
