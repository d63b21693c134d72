import { chmod, chown, mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { basename, dirname, join } from 'node:path'
import { describe, expect, test } from 'vitest'
import { scratchDirectory } from '../scratch.suite.ts'
import { makePrivateDirectory } from './projected-directory.ts'

async function place() {
  const directory = await scratchDirectory()
  const { uid } = await stat(directory)
  return {
    directory,
    runtimeDirectories: [directory],
    pid: 42,
    uid,
    isAlive: (pid: number) => pid === 42 || pid === 43,
  }
}

const refusal = {
  code: 'NO_PRIVATE_DIRECTORY',
  hint: expect.stringContaining('XDG_RUNTIME_DIR'),
}

test('only its owner can look into it [ISS-W2]', async () => {
  const path = await makePrivateDirectory(await place())
  expect(((await stat(path)).mode & 0o777).toString(8)).toBe('700')
})

test('what killed processes left behind goes; what others run or put there stays', async () => {
  const where = await place()
  const at = (name: string) => join(where.directory, name)
  await mkdir(at('sallyport-workload-41-killed'))
  await writeFile(at('sallyport-workload-41-killed/token'), 'x')
  await mkdir(at('sallyport-workload-43-running'))
  await mkdir(at('precious'))
  await symlink(at('precious'), at('sallyport-workload-41-link'))
  const made = basename(await makePrivateDirectory(where))
  expect((await readdir(where.directory)).toSorted()).toEqual(
    ['precious', 'sallyport-workload-41-link', made, 'sallyport-workload-43-running'].toSorted(),
  )
})

describe('a place in which others could put something else is not taken [ISS-W2]', () => {
  test.each([
    ['writable for all', 0o777, false],
    ['writable for the group', 0o770, false],
    ['writable for all, and sticky', 0o1777, true],
    ['writable for its owner', 0o755, true],
  ])('%s', async (_what, mode, isTaken) => {
    const where = await place()
    const candidate = join(where.directory, 'candidate')
    await mkdir(candidate)
    await chmod(candidate, mode)
    const path = await makePrivateDirectory({
      ...where,
      runtimeDirectories: [candidate, where.directory],
    })
    expect(dirname(path) === candidate).toBe(isTaken)
  })

  test.skipIf(process.getuid?.() !== 0)('one of another user is refused', async () => {
    const where = await place()
    await chown(where.directory, 65_534, 65_534)
    await expect(makePrivateDirectory(where)).rejects.toMatchObject(refusal)
  })

  test('one that is not there is refused with what to do', async () => {
    const where = await place()
    const runtimeDirectories = [join(where.directory, 'none')]
    await expect(makePrivateDirectory({ ...where, runtimeDirectories })).rejects.toMatchObject(
      refusal,
    )
  })
})
