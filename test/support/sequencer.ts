/**
 * The order of the test files: long ones first, so that the last minute has short ones to fill it.
 * Those that compute stand beside those that wait for servers and processes. Vitest knows by itself
 * how long a file took, but only where it has run before.
 */
import { BaseSequencer, type TestSpecification } from 'vitest/node'
import { LONG } from './groups.ts'

export default class LongFirst extends BaseSequencer {
  override async sort(files: TestSpecification[]): Promise<TestSpecification[]> {
    const rank = ({ moduleId }: TestSpecification) => {
      const at = LONG.findIndex((name) => moduleId.endsWith(`/${name}.test.ts`))
      return at < 0 ? LONG.length : at
    }
    return (await super.sort(files)).sort((a, b) => rank(a) - rank(b))
  }
}
