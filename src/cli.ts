// The `portcullis` command. scripts/portcullis.js starts it on the pinned Node.
import { run } from './cli/program.ts';

process.exitCode = await run(process.argv.slice(2), process.env);
