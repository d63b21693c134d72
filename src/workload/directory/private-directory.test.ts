import { mkdir, readdir, stat, symlink, writeFile } from 'node:fs/promises'
import { basename, join } from 'node:path'
import { expect, test } from 'vitest'
import { scratchDirectory } from '../scratch.suite.ts'
import { makePrivateDirectory } from './private-directory.ts'

async function place() {
  const runtimeDirectory = await scratchDirectory()
  const { uid } = await stat(runtimeDirectory)
  return { runtimeDirectory, pid: 42, uid, isAlive: (pid: number) => pid === 42 || pid === 43 }
}

test('only its owner can look into it [ISS-W2]', async () => {
  const path = await makePrivateDirectory(await place())
  expect(((await stat(path)).mode & 0o777).toString(8)).toBe('700')
})

test('what killed processes left behind goes; what others run or put there stays', async () => {
  const where = await place()
  const at = (name: string) => join(where.runtimeDirectory, name)
  await mkdir(at('sallyport-workload-41-killed'))
  await writeFile(at('sallyport-workload-41-killed/token'), 'x')
  await mkdir(at('sallyport-workload-43-running'))
  await mkdir(at('precious'))
  await symlink(at('precious'), at('sallyport-workload-41-link'))
  const made = basename(await makePrivateDirectory(where))
  expect((await readdir(where.runtimeDirectory)).toSorted()).toEqual(
    ['precious', 'sallyport-workload-41-link', made, 'sallyport-workload-43-running'].toSorted(),
  )
})

test('directories of other users are left alone', async () => {
  const where = await place()
  await mkdir(join(where.runtimeDirectory, 'sallyport-workload-41-theirs'))
  await makePrivateDirectory({ ...where, uid: where.uid + 1 })
  expect(await readdir(where.runtimeDirectory)).toContain('sallyport-workload-41-theirs')
})
