import { describe, expect, test } from 'bun:test'
import { startPages } from '../../test/support/pages.ts'
import { tools } from '../../test/support/tools.ts'
import { measured } from '../measure.ts'

describe.skipIf(!tools.chromium)('a page is there within 300 ms', () => {
  // The pages are empty until their script has run, so all controls work.
  test.each([
    ['/console', '#main, input'],
    ['/docs', 'article'],
  ])(
    '%s',
    async (path, part) => {
      await using pages = await startPages()
      const page = await pages.open(path)
      await page.reload()
      await page.locator(part).first().waitFor()
      const painted = await page.evaluate(
        "performance.getEntriesByName('first-contentful-paint')[0].startTime",
      )
      expect(painted).toBeLessThan(300)
    },
    measured,
  )
})
