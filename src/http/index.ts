/** The exports of every adapter beside `rateLimit`. */

export { type ByIpOptions, byIp } from './by-ip.ts'
export type { HeaderChoice, HeaderStyle } from './headers.ts'
export { byHeader, byRoute, byUser, everyone, type KeyFunction, type OtherwiseOptions } from './keys.ts'
export type { HttpChoices, HttpOptions, KeySource, Told, WhatLimits } from './options.ts'
export type { Answer, BodySource, Refusal } from './refusal.ts'
export type { HttpOutcome, HttpRequest } from './request.ts'
export type { HttpDecision } from './settling.ts'
export type { WarningCode } from './warnings.ts'
