import { chmod, mkdir, mkdtemp, readdir, readFile, stat, writeFile } from 'node:fs/promises'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { beforeEach, expect, test } from 'vitest'
import { readFileIfPresent, replaceFile } from './files.ts'

let directory: string
beforeEach(async () => {
  directory = await mkdtemp(join(tmpdir(), 'files-'))
})

test('a file that is not there reads as undefined, one that cannot be read is an error', async () => {
  expect(await readFileIfPresent(join(directory, 'none'))).toBeUndefined()
  await expect(readFileIfPresent(directory)).rejects.toMatchObject({ code: 'EISDIR' })
})

test('a replaced file has the new content and exactly the mode asked for', async () => {
  const path = join(directory, 'key')
  await writeFile(path, 'old and longer')
  await chmod(path, 0o644)
  await replaceFile(path, 'new', 0o600)
  expect(await readFile(path, 'utf8')).toBe('new')
  expect((await stat(path)).mode & 0o777).toBe(0o600)
  expect(await readdir(directory)).toEqual(['key'])
})

test('what cannot take the place of the old file leaves nothing behind', async () => {
  const path = join(directory, 'taken')
  await mkdir(path)
  await writeFile(join(path, 'inside'), '')
  await expect(replaceFile(path, 'new', 0o600)).rejects.toMatchObject({ syscall: 'rename' })
  expect(await readdir(directory)).toEqual(['taken'])
})
