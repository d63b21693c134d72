import { execFile } from 'node:child_process'
import { createHash } from 'node:crypto'
import {
  copyFile,
  cp,
  mkdir,
  readdir,
  rename,
  rm,
  stat,
  symlink,
  writeFile,
} from 'node:fs/promises'
import { join } from 'node:path'
import { fileURLToPath } from 'node:url'
import { promisify } from 'node:util'

const root = fileURLToPath(new URL('..', import.meta.url))
const cache = join(root, 'node_modules/.cache/sallyport/test-builds')
/** Parts of the package that are not compiled. */
const shipped = ['examples/whoami-addon']
const keepForMs = 24 * 3600 * 1000

let building: Promise<string> | undefined

/**
 * Compiles the current sources, for tests and benches that start a program of ours, and returns
 * the directory that stands for `dist`; `../bench` beside it holds the benches. A build whose
 * sources have not changed is used again. Types are not checked here.
 */
export function buildOnce(): Promise<string> {
  building ??= build()
  return building
}

async function build(): Promise<string> {
  const target = join(cache, await fingerprint())
  if (!(await exists(target))) {
    // Several test files may come here at the same time: each builds for itself, one of them stays.
    const own = `${target}.${process.pid}`
    await compileTo(own)
    await rename(own, target).catch(async (error: unknown) => {
      await rm(own, { recursive: true, force: true })
      if (!(await exists(target))) throw error
    })
    await removeOld()
  }
  return join(target, 'src')
}

async function compileTo(directory: string): Promise<void> {
  await mkdir(directory, { recursive: true })
  // The nearest package.json makes the files modules, and some read their version from it.
  await copyFile(join(root, 'package.json'), join(directory, 'package.json'))
  // What the package brings along finds the package by its name, whose exports lie in `dist`.
  for (const part of shipped) await cp(join(root, part), join(directory, part), { recursive: true })
  await symlink('src', join(directory, 'dist'))
  const config = join(directory, 'tsconfig.json')
  const settings = {
    extends: join(root, 'tsconfig.json'),
    compilerOptions: {
      noEmit: false,
      noCheck: true,
      declaration: false,
      rootDir: root,
      outDir: directory,
    },
    include: [join(root, 'src'), join(root, 'bench')],
    exclude: [join(root, 'src/**/*.test.ts'), join(root, 'src/**/*.suite.ts')],
  }
  await writeFile(config, JSON.stringify(settings))
  const compiler = join(root, 'node_modules/typescript7/bin/tsc')
  await promisify(execFile)(process.execPath, [compiler, '-p', config])
}

/** Changes whenever a source file does. */
async function fingerprint(): Promise<string> {
  const hash = createHash('sha256')
  for (const folder of ['src', 'bench', ...shipped]) {
    const names = await readdir(join(root, folder), { recursive: true })
    for (const name of names
      .filter((each) => /\.(?:ts|json|js|css|html|yaml)$/.test(each))
      .sort()) {
      const { mtimeMs, size } = await stat(join(root, folder, name))
      hash.update(`${folder}/${name} ${mtimeMs} ${size}\n`)
    }
  }
  for (const name of ['package.json', 'tsconfig.json', 'test/build-once.ts']) {
    hash.update(`${name} ${(await stat(join(root, name))).mtimeMs}\n`)
  }
  return hash.digest('hex').slice(0, 16)
}

/** Others may still be running from a recent build. */
async function removeOld(): Promise<void> {
  for (const name of await readdir(cache)) {
    const path = join(cache, name)
    const { mtimeMs } = await stat(path)
    if (Date.now() - mtimeMs > keepForMs) await rm(path, { recursive: true, force: true })
  }
}

async function exists(path: string): Promise<boolean> {
  return stat(path).then(
    () => true,
    () => false,
  )
}
