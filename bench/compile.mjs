// Compiles src/ and bench/ side by side into a directory of their own: a run that takes minutes must
// not change with the sources under it. Types are checked elsewhere.
import { spawnSync } from 'node:child_process'
import { copyFileSync, mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { root } from '../scripts/install.mjs'

function compile() {
  const cache = join(root, 'node_modules', '.cache', 'sallyport')
  mkdirSync(cache, { recursive: true })
  const directory = mkdtempSync(join(cache, 'bench-'))
  // The nearest package.json makes the files modules, and some read their version from it.
  copyFileSync(join(root, 'package.json'), join(directory, 'package.json'))
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
  writeFileSync(config, JSON.stringify(settings))
  const compiler = join(root, 'node_modules', 'typescript7', 'bin', 'tsc')
  const tsc = spawnSync(process.execPath, [compiler, '-p', config], { stdio: 'inherit' })
  return { directory, failed: tsc.status !== 0 }
}

/** Runs a program of bench/ with these arguments on a fresh build, and ends with its exit code. */
export function runCompiled(program, args) {
  // Ctrl-C reaches the program as well; what it ends with is reported, and the build removed.
  for (const signal of ['SIGINT', 'SIGTERM']) process.on(signal, () => {})
  const { directory, failed } = compile()
  try {
    if (failed) process.exitCode = 1
    else {
      const path = join(directory, 'bench', program)
      const env = { ...process.env, SALLYPORT_ROOT: root }
      const run = spawnSync(process.execPath, [path, ...args], { stdio: 'inherit', env })
      process.exitCode = run.status ?? 1
    }
  } finally {
    rmSync(directory, { recursive: true, force: true })
  }
}
