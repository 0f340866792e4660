"""Results of other tools: elbencho and dbench are read, the others refused by name and never taken for a table."""

from __future__ import annotations

import csv
import io

import pytest
from told import told

from iodelta.audit import audit
from iodelta.ingest import read_bytes

TITLES = (
    "ISO date,label,path type,paths,hosts,threads,dirs,files,file size,block size,direct IO,random,random aligned,"
    "IO depth,shared paths,truncate,operation,time ms [first],time ms [last],entries/s [first],entries/s [last],"
    "IOPS [first],IOPS [last],MiB/s [first],MiB/s [last],CPU% [first],CPU% [last],entries [first],entries [last],"
    "MiB [first],MiB [last],Ent lat us [min],Ent lat us [avg],Ent lat us [max],IO lat us [min],IO lat us [avg],"
    "IO lat us [max],rwmix read IOPS [first],rwmix read IOPS [last],rwmix read MiB/s [first],rwmix read MiB/s [last],"
    "version,command"
)
ROWS = """\
2026-05-22T16:09:38,none,dir,1,1,8,1,4,268435456,4096,1,1,,4,1,0,MKDIRS,2,5,3277,1466,,,,,8,7,8,8,,,812,1068,1378,,,,,,,,3.1,"x"
2026-05-22T16:09:38,none,dir,1,2,8,1,4,268435456,4096,1,1,,4,1,0,READ,846,905,,,96730,90480,377,353,9,8,,,32,32,,,,553,3223,6922,,,,,3.1,"x"
2026-05-22T16:09:41,none,dir,1,1,8,1,4,268435456,1048576,1,0,,4,1,0,WRITE,2134,2784,11,11,3494,2941,3494,2941,10,9,25,32,7460,8192,290635,609112,867164,1661,9383,120903,,,,,3.1,"x"
2026-05-22T16:09:44,none,dir,1,1,8,1,4,268435456,1048576,1,0,,4,1,0,RWMIX70,2134,2784,11,11,3494,2941,3494,2941,10,9,25,32,7460,8192,290635,609112,867164,1661,9383,120903,8000,7000,8000,7001,3.1,"x"
"""


def test_elbencho_csv_is_what_the_csv_module_reads() -> None:
    text = f"{TITLES}\n{ROWS}"
    found = read_bytes(text.encode(), "elbencho.csv")
    rows = [row for row in csv.DictReader(io.StringIO(text)) if row["IOPS [last]"]]
    assert len(found.runs) == len(rows) == 3
    for run, row in zip(found.runs, rows, strict=True):
        kind = "read" if row["operation"] == "READ" else "write"
        d = run.direction("read" if kind == "read" else "write")
        assert d is not None
        assert d.lat is not None
        assert d.iops.value == int(row["IOPS [last]"])
        assert d.bandwidth.value == int(row["MiB/s [last]"]) * 2**20
        assert d.lat.mean.value == int(row["IO lat us [avg]"]) * 1000
        assert run.workload.bs == int(row["block size"])
        assert run.workload.numjobs == int(row["threads"]) * int(row["hosts"])
    assert [run.workload.rw for run in found.runs] == ["randread", "write", "rw"]
    assert [run.jobname for run in found.runs] == ["read", "write", "rwmix70"], "the label none is no name"
    named = read_bytes(text.replace(",none,", ",night 7,").encode(), "elbencho.csv").runs
    assert {run.jobname for run in named} == {"night 7"}
    mixed = found.runs[2].direction("read")
    assert mixed is not None
    assert (mixed.iops.value, mixed.bandwidth.value) == (7000, 7001 * 2**20)
    assert ["MKDIRS" in refusal.reason for refusal in found.refusals] == [True]


TEXTS = {
    "elbencho": (
        """\
OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
WRITE       Elapsed ms       :        2134        2784
            IOPS             :        3494        2941
            Throughput MiB/s :        1747        1470
            Total MiB        :        7460        8192
---
READ        Elapsed ms       :         846         905
            IOPS             :        9673        9048
            Throughput MiB/s :        4836        4524
---
""",
        """\
3 write/last: write jobs1 | write 2784ms iops=2941 MB/s=1541.40672
8 read/last: read jobs1 | read 905ms iops=9048 MB/s=4743.75782""",
    ),
    "elbencho since 3.0": (
        """\
OPERATION   RESULT TYPE         FIRST DONE   LAST DONE
=========== ================    ==========   =========
WRITE       Elapsed time     :      2.134s      2.784s
            IOPS             :        3494        2941
            Throughput MiB/s :        1747        1470
            Total MiB        :        7460        8192
---
READ        Elapsed time     :     14m0.846s 14m0.905s
            IOPS             :        9673        9048
            Throughput MiB/s :        4836        4524
---
""",
        """\
3 write/last: write jobs1 | write 2784ms iops=2941 MB/s=1541.40672
8 read/last: read jobs1 | read 840905ms iops=9048 MB/s=4743.75782""",
    ),
    "dbench": (
        """\
dbench version 4.00 - Copyright Andrew Tridgell 1999-2004

 Operation      Count    AvgLat    MaxLat
 ----------------------------------------
 NTCreateX     934532     0.042   123.456
 Close         686483     0.003    10.123
 Flush          65535     1.700    88.888

Throughput 1234.56 MB/sec  8 clients  8 procs  max_latency=123.464 ms
""",
        "9 dbench 8 clients: jobs8 | mixed MB/s=1234.56",
    ),
    "dbench, its last line": (
        "Throughput 260.6 MB/sec (sync open) 10 procs\n",
        "1 dbench 10 clients/sync open: jobs10 | mixed MB/s=260.6",
    ),
}


@pytest.mark.parametrize("what", TEXTS)
def test_the_text_of_another_tool_gives_the_numbers_of_all_its_threads(what: str) -> None:
    text, expected = TEXTS[what]
    assert told(text) == expected


FOREIGN = {
    "vdbench": "Vdbench summary report\n\nMay 05, 2026  interval   i/o   MB/sec   bytes   read   resp\n"
    "                        rate  1024**2   i/o   pct    time\n"
    "10:00:01.001      1   5000.0   19.53   4096   100.00   1.234\n"
    "10:00:02.001      avg_2-2   5100.0   19.92   4096   100.00   1.200\n",
    "sysbench": "Throughput:\n    read, MiB/s:                  12.50\n\nLatency (ms):\n"
    "         min:                                    0.52\n"
    "         avg:                                    1.20\n"
    "         max:                                   15.10\n"
    "         95th percentile:                        2.00\n",
    "CBT": "Comparative Performance Report for a vs b\n\n|Sequential Read|a|b|\n|:--|--:|--:|\n"
    "|[4K](#r)|25339 IOps@7.6ms|24109 IOps@8.0ms|\n",
    "CrystalDiskMark": "CrystalDiskMark 8.0.4 x64 (C) 2007-2021\n[Read]\n"
    "  SEQ    1MiB (Q=  8, T= 1):  3560.123 MB/s [   3395.2 IOPS] <  2354.13 us>\n"
    "  RND    4KiB (Q= 32, T= 1):   560.123 MB/s [ 136748.8 IOPS] <   233.13 us>\n",
    "AS SSD": "AS SSD Benchmark 2.0.7316.34247\n------------------------------\nName: A Disk\n"
    "------------------------------\nSequential:\n------------------------------\nRead: 2,786.11 MB/s\n"
    "Write: 2,301.45 MB/s\n------------------------------\n4K:\n------------------------------\nRead: 51.70 MB/s\n",
    "hdparm": "/dev/sda:\n Timing cached reads:   21038 MB in  1.99 seconds = 10567.89 MB/sec\n"
    " Timing buffered disk reads: 1558 MB in  3.00 seconds = 519.19 MB/sec\n",
    "iostat": "Device            r/s     rkB/s   r_await     w/s     wkB/s   w_await  aqu-sz  %util\n"
    "sda            1200.00   4800.00     0.81    3.00     12.00      1.00    0.97  99.00\n"
    "sdb            1300.00   5200.00     0.71    4.00     16.00      1.10    0.92  98.00\n",
    "CrystalDiskMark without banner": "   Sequential Read (Q= 32,T= 1) :  3512.345 MB/s\n",
    "sysbench without latencies": "File operations:\n    reads/s:  6543.21\n\nThroughput:\n    read, MiB/s:  102.24\n",
    "CrystalDiskMark without its name": "  RND    4KiB (Q=  1, T= 1):    60.123 MB/s [  14678.8 IOPS] <    67.13 us>\n",
    "diskspd": "Total IO\nthread |       bytes     |     I/Os     |    MiB/s   |  I/O per s |  AvgLat  |  file\n"
    "     0 |      8589934592 |      2097152 |     273.07 |   69905.07 |    0.457 | test.dat (8GiB)\n",
    "sar": "12:00:01          DEV       tps     rkB/s     wkB/s     dkB/s   areq-sz    aqu-sz     await     %util\n"
    "12:00:02          sda    100.00    400.00      0.00      0.00      4.00      0.05      0.50      5.00\n",
    "rados bench": "Total writes made:      1234\nBandwidth (MB/sec):     493.6\nAverage IOPS:           123\n",
    "SPDK": "Device Information                     :       IOPS      MiB/s    Average        min        max\n"
    "PCIE (0000:5e:00.0) NSID 1 from core  0:  512345.67    2001.35      62.34      10.20     456.78\n"
    "Total                                  :  512345.67    2001.35      62.34      10.20     456.78\n",
    "ioping": "--- /tmp (ext4 /dev/sda1) ioping statistics ---\n9 requests completed in 3.1 ms, 2.90 k iops\n",
    "YCSB": "[OVERALL], RunTime(ms), 10110\n[OVERALL], Throughput(ops/sec), 98.9\n[READ], AverageLatency(us), 1054.5\n",
    "bench.sh": " I/O Speed(1st run) : 1.1 GB/s\n I/O Speed(average) : 1092.3 MB/s\n",
    "dd": "1073741824 bytes (1.1 GB, 1.0 GiB) copied, 1.2 s, 905 MB/s\n",
    "iostat without the words of Linux": "        ada1              da0\nKB/t   tps  MB/s KB/t   tps  MB/s\n"
    "1024   103 102.99  0.0     0  0.00\n",
    "iostat without extended statistics": "Device             tps    kB_read/s    kB_wrtn/s\nsda  10.1 200.2 300.3\n",
    "ping": "PING 1.1.1.1 (1.1.1.1) 56(84) bytes of data.\n64 bytes from 1.1.1.1: icmp_seq=1 ttl=57 time=4.21 ms\n",
    "a network test": "[ ID] Interval           Transfer     Bitrate\n"
    "[  5]   0.00-10.00  sec  1.10 GBytes   941 Mbits/sec\n",
    "a network test without its name": "Node Name  Upload Speed  Download Speed  Latency\n"
    "A place  942.15 Mbps  941.20 Mbps  0.55 ms\n",
    "Geekbench": "Geekbench 6 Benchmark Test:\nSingle Core | 1234\n",
    "sysbench without a result of its own": "sysbench 1.0.20 (using system LuaJIT)\n    reads/s:      1234.5\n",
    "iostat without %util": "Device   r/s   rkB/s   r_await\nsda   101.0   404.0   0.52\n",
}


@pytest.mark.parametrize("tool", FOREIGN)
def test_results_of_other_tools_are_refused_by_name(tool: str) -> None:
    found = read_bytes(FOREIGN[tool].encode(), "x.txt")
    assert found.runs == ()
    (refusal,) = found.refusals
    assert refusal.reason.startswith(f"results of {tool.partition(' without')[0]},")
    assert refusal.place.line > 0


def test_the_interval_table_of_vdbench_is_refused_without_its_banner() -> None:
    banner, _, table = FOREIGN["vdbench"].partition("\n\n")
    assert "Vdbench" in banner
    for text in (table, table[table.index("interval") :], table[table.index("\n") :].lstrip()):
        found = read_bytes(text.encode(), "x.txt")
        assert found.runs == ()
        assert "results of vdbench" in found.refusals[0].reason


def test_threads_of_elbencho_that_end_one_after_another_are_no_contradiction() -> None:
    """2,941 IOPS x 9.383 ms are 27.6 of 32 I/Os: the rate is over the time until the last thread is done."""
    found = read_bytes(f"{TITLES}\n{ROWS}".encode(), "elbencho.csv")
    rules = {hit.finding.rule for hit in audit(found.runs).hits}
    assert not {"little.mismatch", "little.gap"} & rules
    ten_times = read_bytes(f"{TITLES}\n{ROWS}".replace("1661,9383,", "1661,93830,").encode(), "elbencho.csv")
    assert "little.impossible" in {hit.finding.rule for hit in audit(ten_times.runs).hits}
