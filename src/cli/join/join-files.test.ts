import { chmod, mkdtemp, rename, rm, symlink } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, test } from 'vitest'
import { Secret } from '../../core/index.ts'
import { PendingKey, presentIdentity, refuseOccupied } from './files.ts'

let directory: string
let pending: PendingKey
let path: string

beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'sallyport-join-files-'))
  pending = new PendingKey(join(directory, 'n1.kubeconfig'))
  path = join(directory, '.n1.kubeconfig.pending-key')
  await pending.keep(new Secret('the key'))
})
afterEach(() => rm(directory, { recursive: true, force: true }))

describe('the key of a request that is under way [DISC-C10]', () => {
  test('is found by the next run', async () => {
    expect((await pending.read())?.reveal()).toBe('the key')
  })

  test.each([
    ['others can read', () => chmod(path, 0o644)],
    [
      'a link leads to',
      async () => {
        await rename(path, join(directory, 'elsewhere'))
        await symlink(join(directory, 'elsewhere'), path)
      },
    ],
  ])('is not taken over if %s it: somebody else may know it', async (_name, change) => {
    await change()
    expect(await pending.read()).toBeUndefined()
  })
})

test.each([
  ['a directory', () => directory, 'it is a directory'],
  ['below a file', () => join(path, 'x'), 'what should be its directory is a file'],
  ['too long', () => join(directory, 'x'.repeat(300)), 'the name is too long'],
])('a place for the kubeconfig that is %s is told as such', async (_name, place, said) => {
  // One after the other: a second one that fails while the first is awaited would be nobody's.
  for (const look of [() => presentIdentity(place(), 'jane'), () => refuseOccupied(place())])
    await expect(look()).rejects.toMatchObject({
      code: 'CANNOT_WRITE',
      message: expect.stringContaining(said),
    })
})
