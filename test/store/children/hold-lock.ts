import { lockDataDir } from '../../../src/store/db/data-dir.ts';

lockDataDir(process.argv[2] ?? '');
process.stdout.write('locked\n');
process.stdin.resume();
