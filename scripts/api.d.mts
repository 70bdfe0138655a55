export const REPORT: string
export function report(): string
