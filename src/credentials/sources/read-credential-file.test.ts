import { describe, expect, test } from 'vitest'
import { readCredentialFile } from './file-source.ts'

describe('a file that a kubeconfig names', () => {
  test('is read whole', async () => {
    expect(await readCredentialFile(import.meta.filename)).toMatch(/^import[^]*\}\)\n$/)
  })

  test.each([
    ['/dev/zero', 'is too large'],
    ['/', 'EISDIR'],
    ['/nowhere/token', 'ENOENT'],
    ['/etc/passwd\0', 'unknown error|ERR_INVALID_ARG_VALUE'],
  ])('%j is refused', async (path, why) => {
    await expect(readCredentialFile(path)).rejects.toMatchObject({
      code: 'FILE',
      message: expect.stringMatching(why),
    })
  })
})
