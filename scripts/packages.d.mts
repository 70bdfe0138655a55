export function ensureRedis(): void
export function ensureChromium(): void
export function tryValkey(): void
export function chromiumPath(): string | undefined
