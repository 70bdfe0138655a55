/** Faults of servers: real processes that are killed, stopped, filled up, kept busy, replaced. */
import { serverFaults } from './faults.ts'
import { tellAll } from './stories.ts'

// Clients see the server itself go, unless another one is to take its place behind the same
// address.
tellAll(serverFaults, ({ now, address }, { prepare }) => (prepare === undefined ? now.server : address))
