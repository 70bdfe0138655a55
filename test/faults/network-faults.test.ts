/** Faults of the network: bytes that are late, lost, or cut off. */
import { networkFaults } from './faults.ts'
import { tellAll } from './stories.ts'

tellAll(networkFaults(), ({ address }) => address)
