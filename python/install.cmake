# What `pip install .` puts into the Python package: the simulator's programs and libraries, and the data files.
# The root CMakeLists.txt includes this last; a part that is not built is left out.
foreach(target dryfly_conductor_app dryfly-launch dryfly_generator_app dryfly_motif_app dryfly_count_app)
  if(TARGET ${target})
    install(TARGETS ${target} RUNTIME DESTINATION dryfly/_native COMPONENT python)
  endif()
endforeach()
foreach(target dryfly_provider dryfly_preload)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION dryfly/_native COMPONENT python)
  endif()
endforeach()
if(TARGET dryfly_node_provider)
  install(TARGETS dryfly_node_provider LIBRARY DESTINATION dryfly/_native/linkx COMPONENT python)
endif()
foreach(target dryfly_gpu dryfly_cuda dryfly_cudart dryfly_gpu_openmpi)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION dryfly/_native/gpu COMPONENT python NAMELINK_SKIP)
  endif()
endforeach()
foreach(target dryfly_hip5 dryfly_hip6 dryfly_hip7)
  if(TARGET ${target})
    install(TARGETS ${target} LIBRARY DESTINATION dryfly/_native/gpu/hip COMPONENT python)
  endif()
endforeach()
if(TARGET dryfly_level_zero)
  install(TARGETS dryfly_level_zero LIBRARY DESTINATION dryfly/_native/gpu/level_zero COMPONENT python NAMELINK_SKIP)
endif()
install(DIRECTORY ${CMAKE_SOURCE_DIR}/data/ DESTINATION dryfly/data COMPONENT python FILES_MATCHING PATTERN "*.toml")
# The solvers and microbenchmarks are compiled with the user's MPI when they are first asked for.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/programs/hpl ${CMAKE_SOURCE_DIR}/programs/mxp ${CMAKE_SOURCE_DIR}/programs/micro
        ${CMAKE_SOURCE_DIR}/programs/benchmark ${CMAKE_SOURCE_DIR}/programs/measure ${CMAKE_SOURCE_DIR}/programs/proxy
        DESTINATION dryfly/programs
        COMPONENT python FILES_MATCHING PATTERN "*.hpp" PATTERN "*.cpp" PATTERN "*.c" PATTERN "*.h")
# What programs include.
install(DIRECTORY ${CMAKE_SOURCE_DIR}/include/ DESTINATION dryfly/include COMPONENT python FILES_MATCHING PATTERN "*.h")
# Manual pages: share/man of the prefix, a virtual environment's too.
if(DEFINED SKBUILD_DATA_DIR)
  install(DIRECTORY ${CMAKE_SOURCE_DIR}/man/ DESTINATION ${SKBUILD_DATA_DIR}/share/man/man1 COMPONENT python
          FILES_MATCHING PATTERN "*.1")
endif()
