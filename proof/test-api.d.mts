export function collector(redisPort: number): { readonly api: { readonly test: object; readonly describe: object } }
