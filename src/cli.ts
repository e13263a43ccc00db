// The `portcullis` command. scripts/portcullis.js starts it on the pinned Node.
import path from 'node:path';

// A reader that has seen enough (`| head`) is no failure.
process.stdout.on('error', (error: NodeJS.ErrnoException) => {
  if (error.code !== 'EPIPE') throw error;
});

/** Loads the program. Where its packages were not installed, one line says so. */
async function load(): Promise<typeof import('./cli/program.ts')> {
  try {
    return await import('./cli/program.ts');
  } catch (error) {
    const [, name] = /^Cannot find package '([^']+)'/.exec(error instanceof Error ? error.message : '') ?? [];
    if (name === undefined) throw error;
    const root = path.dirname(import.meta.dirname);
    process.stderr.write(`portcullis: the package ${name} is not installed: run \`npm ci\` in ${root}.\n`);
    return process.exit(1);
  }
}

const { run } = await load();
process.exitCode = await run(process.argv.slice(2), process.env);
